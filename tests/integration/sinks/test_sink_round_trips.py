"""Values of every type, into each database and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from worker.sinks.base import Field
from worker.sinks.sql import SqlSink
from worker.sinks.types import EPOCH, column_type

MakeSink = Callable[..., SqlSink]


def instant(*parts: int) -> tuple[int, datetime]:
    """Microseconds since 1970, and the time they mean."""
    at = datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]  # a list of numbers
    return (at - EPOCH) // timedelta(microseconds=1), at


def day(*parts: int) -> tuple[int, date]:
    """Days since 1970, and the date they mean."""
    return (date(*parts) - EPOCH.date()).days, date(*parts)


def same(value: Any) -> tuple[Any, Any]:
    return value, value


ROUND_TRIPS = [
    ("boolean", same(value=True)),
    ("byte", same(-128)),
    ("short", same(32767)),
    ("integer", same(-(2**31))),
    ("long", same(2**63 - 1)),
    ("long", same(-(2**63))),
    ("float", same(1.5)),
    ("double", same(0.1 + 0.2)),
    ("double", same(math.inf)),
    ("double", same(-math.inf)),
    ("double", same(5e-324)),
    ("string", same("Zürich \U0001f6eb\t\\N 'x'\n")),
    ("string", same("")),
    ("string collate UTF8_LCASE", same("x")),
    ("varchar(3)", same("abc")),
    ("char(3)", same("a  ")),
    ("binary", same(bytes(range(256)))),
    ("binary", same(b"")),
    ("date", day(1, 1, 1)),
    ("date", day(9999, 12, 31)),
    ("timestamp_ntz", same(datetime(2013, 1, 1, 5, 15, 0, 1))),  # noqa: DTZ001 - a Spark NTZ has no zone
    ("timestamp_ntz", same(datetime(1, 1, 1))),  # noqa: DTZ001 - likewise
    ("time(6)", same(time(5, 15, 0, 1))),
    ("decimal(38,18)", same(Decimal("12345678901234567890.123456789012345678"))),
    ("decimal(38,0)", same(Decimal("9" * 38))),
    ("decimal(38,38)", same(Decimal("0." + "9" * 38))),
    ("decimal(5,2)", same(Decimal("-0.10"))),
    ("timestamp", instant(2013, 1, 1, 5, 15, 0, 1)),
    ("timestamp", instant(1, 1, 1)),
    ("timestamp", instant(9999, 12, 31, 23, 59, 59, 999_999)),
]


@pytest.fixture(autouse=True, params=["collected", "inline", "staged"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, batch: Any) -> None:
    """Every way to the table."""
    monkeypatch.setattr(batch, "collects", request.param == "collected")
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


def test_values_come_back_as_they_went(make_sink: MakeSink, batch: Any) -> None:
    """Every type that maps keeps its values exactly, NULL included."""
    fields = tuple(Field(f"v{at}", kind) for at, (kind, _) in enumerate(ROUND_TRIPS))
    sink = make_sink(1, fields=fields)
    sink.write(batch(0, [tuple(value for _, (value, _) in ROUND_TRIPS), (None,) * len(ROUND_TRIPS)]))
    columns = [sa.column(field.name, column_type(field.type)) for field in fields]
    with sink._engine.connect() as connection:
        rows = connection.execute(sa.select(*columns).select_from(sa.table("delays"))).all()
    back, nulls = rows if rows[0][0] is not None else reversed(rows)
    assert tuple(nulls) == (None,) * len(ROUND_TRIPS)
    for (kind, (_, expected)), value in zip(ROUND_TRIPS, back, strict=True):
        assert (kind, value) == (kind, expected)


def test_nan(make_sink: MakeSink, batch: Any, peek: Any, url: str) -> None:
    """PostgreSQL keeps it; SQLite has none, so the row is kept with NULL in its place."""
    sink = make_sink(1, fields=(Field("v", "double"),))
    sink.write(batch(0, [(math.nan,)]))
    ((value,),) = peek("SELECT v FROM delays")
    assert value is None if url.startswith("sqlite") else math.isnan(value)
