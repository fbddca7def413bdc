"""Whole documents of tasks, changed in one place; and what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition

DECLARATIVE: dict[str, Any] = {
    "source": {"format": "json", "schema": "a STRING", "options": {"path": "in", "maxFilesPerTrigger": 1}},
    "sql": "SELECT a FROM source WHERE a > 0",
    "sink": {
        "format": "sql",
        "options": {"url": "sqlite:///out.db", "table": "t", "mode": "append", "key": []},
    },
    "output_mode": "append",
    "trigger": {"processing_time": "1 second"},
    "weight": 1.0,
    "worker": None,
    "labels": {},
    "spark_conf": {},
    "restart": {"max_restarts": 5, "window_ms": 300000},
}
ENTRYPOINT: dict[str, Any] = {
    "entrypoint": "flights.pipelines:delays",
    "options": {"path": "in", "deep": [{}]},
}


def with_value(path: str, value: Any, base: dict[str, Any] = DECLARATIVE) -> bytes:
    """`base` with `value` at a dotted path."""
    document = json.loads(json.dumps(base))
    section = document
    *parents, last = path.split("/")
    for name in parents:
        section = section[name]
    section[last] = value
    return json.dumps(document).encode()


def without(name: str, base: dict[str, Any] = DECLARATIVE) -> dict[str, Any]:
    """`base` without one of its keys."""
    return {key: value for key, value in base.items() if key != name}


def problems_of(document: bytes) -> list[tuple[str, str]]:
    """Places and messages."""
    with pytest.raises(DefinitionError) as refusal:
        parse_definition(document)
    return [(problem.path, problem.message) for problem in refusal.value.problems]
