"""A row of a query's result as JSON, as Spark's `to_json` writes it and its `from_json` reads it.

Of the types that a sink of rows takes (`worker.sinks.types`): where rows are nested, Spark itself writes them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

from worker.sinks.types import EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY_ONE = EPOCH.date()


def as_json(names: Sequence[str], kinds: Sequence[str], row: Sequence[Any]) -> bytes:
    """A row as one object.

    Args:
        names: of its columns.
        kinds: Spark's types of them.
        row: its values, instants in microseconds and dates in days since 1970; NULL is left out.
    """
    fields = [
        f"{json.dumps(name, ensure_ascii=False)}:{_value(kind, value)}"
        for name, kind, value in zip(names, kinds, row, strict=True)
        if value is not None
    ]
    return f"{{{','.join(fields)}}}".encode(errors="replace")


def _value(kind: str, value: Any) -> str:
    if kind == "timestamp":
        return _text(_instant(value))
    if kind == "date":
        return _text(_day(value))
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case float() if not isfinite(value):
            return _text({"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN"))
        case int() | float():
            return repr(value)
        case bytes() | bytearray():
            return _text(b64encode(bytes(value)).decode())
        case datetime():
            return _text(value.replace(tzinfo=None).isoformat(timespec="microseconds"))
        case date() | time():
            return _text(value.isoformat())
        case _:
            return _text(str(value))


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _instant(micros: int) -> str:
    """In UTC; beyond the years that Python knows, the number."""
    try:
        moment = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return str(micros)
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _day(days: int) -> str:
    try:
        return (_DAY_ONE + timedelta(days=days)).isoformat()
    except OverflowError:
        return str(days)
