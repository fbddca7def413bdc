from __future__ import annotations

import pytest
from sqlalchemy.dialects import postgresql

from worker.sinks.base import Field
from worker.sinks.errors import SchemaError
from worker.sinks.types import column_type, column_types


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
        Field("months", "interval year to month"),
        Field("long ago", "interval"),
        Field("any", "variant"),
        Field("here", "geometry(4326)"),
        Field("point", {"type": "udt", "class": "x.Point"}),
    ]
    with pytest.raises(SchemaError) as refused:
        column_types(fields)
    text = str(refused.value)
    assert "tags of type array, select to_json(tags) AS tags instead" in text
    assert "nothing of type void, select CAST(nothing AS STRING)" in text
    assert "span of type interval day to second" in text
    assert "months of type interval year to month, select CAST(months AS STRING) AS months" in text
    assert "long ago of type interval, " in text
    assert "any of type variant, select to_json(any)" in text
    assert "here of type geometry(4326), select st_asbinary(here)" in text
    assert "point of type udt" in text
    assert "ok of type" not in text
