"""A row of a query's result as JSON, as Spark's `to_json` writes it and its `from_json` reads it.

Of the types that a sink of rows takes (`worker.sinks.types`); nested rows Spark itself writes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.types import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    return f"{{{','.join(fields)}}}".encode(errors=_ESCAPING)


def _value(kind: str, value: Any) -> str:
    """A value as Spark counts it, or as a driver of a database takes it."""
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "binary":
        return _text(b64encode(_bytes_of(value)).decode())
    if kind.startswith("decimal"):
        return format(Decimal(value), "f")
    if kind in _TIMES:
        return _text(_TIMES[kind](value))
    is_plain = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    return repr(value) if is_plain else _text(_as_text(value))


def _bytes_of(value: Any) -> bytes:
    """Of what Spark has, or a driver takes: psycopg has a wrapper of its own."""
    return bytes(value if isinstance(value, bytes | bytearray | memoryview) else value.obj)


def _as_text(value: Any) -> str:
    match value:
        case float():
            return _NOT_FINITE.get(value, "NaN")
        case time():
            return value.isoformat()
        case _:
            return str(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _instant(value: int | datetime | str) -> str:
    """In UTC; beyond the years that Python knows, Spark's count of microseconds."""
    if isinstance(value, int):
        try:
            value = EPOCH + timedelta(microseconds=value)
        except OverflowError:
            return str(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    return f"{_moment(value)}Z"


def _moment(value: datetime | str) -> str:
    """Without a zone."""
    if isinstance(value, str):
        return value.replace(" ", "T")
    return value.replace(tzinfo=None).isoformat(timespec="microseconds")


def _day(value: int | date | str) -> str:
    if not isinstance(value, int):
        return str(value)
    try:
        return (EPOCH.date() + timedelta(days=value)).isoformat()
    except OverflowError:
        return str(value)


_TIMES: Final[dict[str, Callable[[Any], str]]] = {
    "timestamp": _instant,
    "timestamp_ntz": _moment,
    "date": _day,
}
_ESCAPING: Final = "backslashreplace"
"""Half of a character becomes what JSON has for it, `\\ud800`."""
_NOT_FINITE: Final = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
