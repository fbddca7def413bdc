from __future__ import annotations

import math
import time
from datetime import UTC, date, datetime
from datetime import time as clock_time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError
from worker.sinks.types import column_type, column_types

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sinks.sql import SqlSink

ROUND_TRIPS = [
    ("boolean", True),
    ("byte", -128),
    ("short", 32767),
    ("integer", -(2**31)),
    ("long", 2**63 - 1),
    ("float", 1.5),
    ("double", 0.1 + 0.2),
    ("double", math.inf),
    ("string", "Zürich \U0001f6eb"),
    ("string collate UTF8_LCASE", "x"),
    ("varchar(3)", "abc"),
    ("char(3)", "a  "),
    ("binary", b"\x00\xff"),
    ("date", date(1, 1, 1)),
    ("date", date(9999, 12, 31)),
    ("timestamp_ntz", datetime(2013, 1, 1, 5, 15, 0, 1)),  # noqa: DTZ001 - a Spark NTZ has no zone
    ("time(6)", clock_time(5, 15, 0, 1)),
    ("decimal(38,18)", Decimal("12345678901234567890.123456789012345678")),
    ("decimal(38,0)", Decimal(10**37)),
    ("decimal(5,2)", Decimal("-0.10")),
    ("timestamp", datetime(2013, 1, 1, 5, 15, 0, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("kind", "value"), ROUND_TRIPS)
def test_a_value_comes_back_as_it_went(
    kind: str, value: Any, make_sink: Callable[..., SqlSink], batch: Any
) -> None:
    """Every type that maps keeps its values exactly on SQLite, NULL included."""
    sink = make_sink(1, fields=(Field("v", kind),))
    sink.write(batch(0, [(value,), (None,)]))
    table = sa.table("delays", sa.column("v", column_type(kind)))
    with sink._engine.connect() as connection:
        assert connection.execute(sa.select(table.c.v)).scalars().all() == [value, None]


def test_nan_becomes_null_on_sqlite(make_sink: Callable[..., SqlSink], batch: Any) -> None:
    """SQLite has no NaN; the row is kept, with NULL in its place."""
    sink = make_sink(1, fields=(Field("v", "double"),))
    sink.write(batch(0, [(math.nan,)]))
    with sink._engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT v FROM delays").scalars().all() == [None]


def test_both_hours_of_a_changing_clock_are_told_apart(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark hands instants over as local times; the hour that comes twice in October stays two."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    sink = make_sink(1, fields=(Field("at", "timestamp"),))
    local = datetime(2013, 10, 27, 2, 30)  # noqa: DTZ001 - what Spark hands over
    sink.write(batch(0, [(local,), (local.replace(fold=1),)]))
    with sink._engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT at FROM delays").scalars().all()
    monkeypatch.undo()
    time.tzset()
    assert stored == ["2013-10-27 00:30:00.000000", "2013-10-27 01:30:00.000000"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("timestamp", "TIMESTAMP WITH TIME ZONE"),
        ("timestamp_ntz", "TIMESTAMP WITHOUT TIME ZONE"),
        ("decimal(10,2)", "NUMERIC(10, 2)"),
        ("double", "DOUBLE PRECISION"),
        ("float", "REAL"),
        ("binary", "BYTEA"),
        ("long", "BIGINT"),
        ("byte", "SMALLINT"),
        ("time(6)", "TIME WITHOUT TIME ZONE"),
    ],
)
def test_the_column_types_of_postgresql(kind: str, expected: str) -> None:
    """PostgreSQL gets its own exact types."""
    mapped = column_type(kind)
    assert mapped is not None
    assert mapped.compile(dialect=postgresql.dialect()) == expected  # type: ignore[no-untyped-call]  # theirs


def test_what_has_no_column_type_is_refused_by_name() -> None:
    """All such columns are named at once, each with what to select instead."""
    fields = [
        Field("ok", "string"),
        Field("tags", {"type": "array", "elementType": "string", "containsNull": True}),
        Field("nothing", "void"),
        Field("span", "interval day to second"),
    ]
    with pytest.raises(SchemaError) as refused:
        column_types(fields)
    text = str(refused.value)
    assert "tags of type array, select to_json(tags) AS tags instead" in text
    assert "nothing of type void, select CAST(nothing AS STRING)" in text
    assert "span of type interval day to second" in text
    assert "ok of type" not in text
