"""Whoever reads a part of a stored definition takes whatever a definition may be."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from definition.document import DefinitionError, is_fenced, parse_definition
from definition.resets import faults, meaning, read_ends
from manager.console.definitions import shown, written

SOURCE: dict[str, Any] = {"format": "rate"}
SINK: dict[str, Any] = {"format": "noop"}
NULLS: list[dict[str, Any]] = [
    {"source": SOURCE, "sink": {"format": None, "table": "lake.orders"}},
    {"source": {"format": None, "table": "lake.orders"}, "sink": SINK},
    {"sources": {"a": {"format": None, "table": "lake.orders"}}, "sql": "SELECT * FROM a", "sink": SINK},
    {"source": None, "sources": {"a": SOURCE}, "sql": "SELECT * FROM a", "sink": SINK},
    {"entrypoint": "a.b:c", "source": None, "sink": None, "sql": None, "trigger": None},
    {"source": {**SOURCE, "watermark": None, "value": None, "key": None}, "sink": SINK, "worker": None},
]


@pytest.mark.parametrize("definition", NULLS)
def test_what_is_null_is_as_good_as_left_out(definition: dict[str, Any]) -> None:
    """The manager reads parts of it when an owner dies, is reset or looked at: that must not fail."""
    document = json.dumps(definition).encode()
    assert parse_definition(document).is_fenced is is_fenced(document) is False
    ends = read_ends(document)
    assert list(faults(ends, {"startingOffsets": "earliest"})) is not None
    assert meaning(ends, "earliest")
    assert shown(msgspec.Raw(document))
    assert written(msgspec.Raw(document))


@pytest.mark.parametrize("name", ["${env:FORMAT}", "{", "kafka}", "two words", "x" * 201, "caf\u00e9"])
@pytest.mark.parametrize("end", ["source", "sink"])
def test_a_format_is_a_name(name: str, end: str) -> None:
    """References to secrets are read in options only, and causes name formats."""
    document = {"source": SOURCE, "sink": SINK, end: {"format": name}}
    with pytest.raises(DefinitionError, match=rf"{end}\.format: must be a name of letters"):
        parse_definition(json.dumps(document).encode())
