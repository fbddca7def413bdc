"""Rows that are put aside, as JSON that Spark reads back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from psycopg import Binary

from worker.sinks.row_json import as_json

WALL_CLOCK = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", 'a"b\n\u2028ü', '"a\\"b\\n\u2028ü"'),
        ("boolean", True, "true"),
        ("long", 2**63 - 1, "9223372036854775807"),
        ("double", 0.1, "0.1"),
        ("double", float("nan"), '"NaN"'),
        ("double", float("-inf"), '"-Infinity"'),
        ("decimal(38,2)", Decimal("1E+3"), "1000"),
        ("decimal(38,18)", Decimal("0.000000000000000001"), "0.000000000000000001"),
        ("binary", b"\x00\xff", '"AP8="'),
        ("binary", memoryview(b"\x00\xff"), '"AP8="'),
        ("binary", Binary(b"\x00\xff"), '"AP8="'),
        ("date", 1, '"1970-01-02"'),
        ("date", 10**9, '"1000000000"'),
        ("timestamp", 1, '"1970-01-01T00:00:00.000001Z"'),
        ("timestamp", 2**62, f'"{2**62}"'),
        (
            "timestamp_ntz",
            WALL_CLOCK,
            '"2026-01-02T03:04:05.000006"',
        ),
        ("time(6)", time(1, 2, 3), '"01:02:03"'),
    ],
)
def test_each_type_is_written_as_spark_does(kind: str, value: Any, text: str) -> None:
    """What Python's calendar does not reach stands there as Spark counts it."""
    assert as_json(["a"], [kind], [value]).decode() == f'{{"a":{text}}}'


def test_null_is_left_out() -> None:
    """As `to_json` does; names may be any."""
    assert json.loads(as_json(['a"', "b", "ü"], ["string"] * 3, [None, "x", "y"])) == {"b": "x", "ü": "y"}
    assert as_json(["a"], ["string"], [None]) == b"{}"
