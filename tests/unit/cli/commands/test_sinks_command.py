"""`sparkherd sinks`: the fenced formats that a manager knows, as it describes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from definition.sinks.description import described_sinks
from protocol.messages.sinks import DescribedSink, SinkListResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


def _answer(*sinks: DescribedSink) -> Any:
    return msgspec.json.decode(msgspec.json.encode(SinkListResponse(sinks=sinks)))


@pytest.fixture
def knowing(herd: ScriptedManager) -> ScriptedManager:
    """A manager that knows the formats built in."""
    herd.on("GET", "/v1/sinks", _answer(*described_sinks()))
    return herd


def test_list(sparkherd: Callable[..., Run], knowing: ScriptedManager) -> None:
    """A line a format: what a worker needs, and what goes with it; as JSON what the manager said."""
    lines = sparkherd("sinks", "list", "--manager", knowing.url).out.splitlines()
    assert lines[1].split("  ")[0] == "delta"
    assert "table, partition_by, new columns" in lines[1]
    assert lines[2].split()[:4] == ["fenced_files", "-", "append", "-"]
    shown = json.loads(sparkherd("sinks", "list", "--json", "--manager", knowing.url).out)
    assert shown == knowing.answers["GET", "/v1/sinks"][1]


def test_describe(sparkherd: Callable[..., Run], knowing: ScriptedManager) -> None:
    """Each option with its type, its default, and what it is for."""
    out = sparkherd("sinks", "describe", "delta", "--manager", knowing.url).out
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines()}
    assert rows["mode"][:2] == ["append|overwrite|upsert", '"append"']
    assert rows["key"] == ["array", "of", "string"]
    assert rows["path"][:2] == ["string", "null"]
    out = sparkherd("sinks", "describe", "sql", "--manager", knowing.url).out
    assert ["url", "string", "required"] in [line.split()[:3] for line in out.splitlines()]


def test_describe_what_is_not_there(sparkherd: Callable[..., Run], knowing: ScriptedManager) -> None:
    """Wrong use, with the names that would do."""
    told = sparkherd("sinks", "describe", "parquet", "--manager", knowing.url)
    assert told.code == 2
    assert "there is no fenced format parquet; there are delta, fenced_files, iceberg, sql" in told.err


def test_what_cannot_be_used_says_why(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """In place of what it would be for."""
    broken = msgspec.structs.replace(described_sinks()[0], format="odd", options={}, trouble="odd is broken")
    herd.on("GET", "/v1/sinks", _answer(broken))
    assert "odd is broken" in sparkherd("sinks", "list", "--manager", herd.url).out
    assert sparkherd("sinks", "describe", "odd", "--manager", herd.url).out.startswith("odd: odd is broken")
