"""The demo's tables of Delta Lake, which here others than Spark have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cli.demo import delta_sink
from cli.demo.delta_sink import DeltaSink
from cli.demo.plan import DELAYS, FLIGHTS
from definition.document import parse_definition
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque

if TYPE_CHECKING:
    from pathlib import Path


def put(sink: DeltaSink, place: str, **columns: list[object]) -> None:
    """Rows, by columns."""
    write_deltalake(sink.place / place, pa.table(columns), mode="append")


def test_rows_are_counted_and_read(tmp_path: Path) -> None:
    """Those that came since are counted; tables of several tasks are one."""
    sink = DeltaSink(tmp_path, None)
    put(sink, "flights", carrier=["UA", "UA", "AA"], number=[1, 2, 3])
    put(sink, "delays/one", carrier=["UA"], flights=[2])
    put(sink, "delays/two", carrier=["AA", "AA"], flights=[1, 4])
    assert sink.counted(FLIGHTS, "carrier") == {"UA": 2, "AA": 1}
    assert sink.summed(DELAYS, "carrier", "flights") == {"UA": 2, "AA": 5}
    put(sink, "flights", carrier=["AA"], number=[4])
    assert sink.counted(FLIGHTS, "carrier") == {"UA": 2, "AA": 2}
    assert sorted(sink.rows(FLIGHTS, ["number", "carrier"])) == [(1, "UA"), (2, "UA"), (3, "AA"), (4, "AA")]


def test_there_may_be_no_table_yet(tmp_path: Path) -> None:
    """Nor one with columns: a claim makes the log only."""
    sink = DeltaSink(tmp_path, None)
    assert sink.counted(FLIGHTS, "carrier") == {}
    (sink.place / "flights" / "_delta_log").mkdir(parents=True)
    assert sink.counted(FLIGHTS, "carrier") == {}
    assert list(sink.rows(FLIGHTS, ["carrier"])) == []


def test_definitions_are_what_the_manager_accepts(tmp_path: Path) -> None:
    """Appended to, or by key."""
    sink = DeltaSink(tmp_path, None)
    for definition in (
        sink.definition(FLIGHTS, "ua"),
        sink.definition(DELAYS, "ua-b6", key=["carrier", "hour"]),
    ):
        parse_definition(encode_opaque({"source": {"format": "rate"}, "sink": definition}))


def test_what_is_missing_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Delta in the folder of jars; nothing that reads it."""
    with pytest.raises(StartupError, match="make jars"):
        DeltaSink(tmp_path, str(tmp_path))
    monkeypatch.setattr(delta_sink, "find_spec", lambda _: None)
    with pytest.raises(StartupError, match=r"pip install 'sparkherd\[demo,delta\]'"):
        DeltaSink(tmp_path, None)
