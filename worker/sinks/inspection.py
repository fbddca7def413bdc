"""What the SQL sink would say of a query's columns; looks, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from definition.tables import read_table_name
from worker.sinks.base import Finding
from worker.sinks.database import connect_to_look, transaction
from worker.sinks.errors import SinkError
from worker.sinks.table import by_name, describe_table, folded, is_there, table_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Dialect, Inspector, Table

    from definition.sinks.sql import SqlOptions
    from worker.sinks.base import Field
    from worker.sinks.fence import Owner

_TABLE: Final = "sink.options.table"


def inspect_table(options: SqlOptions, fields: Sequence[Field], owner: Owner) -> Iterator[Finding]:
    """What is to be said of a query's columns, by what the database has of the table.

    Raises:
        SchemaError: no table has such columns.
        SinkError: the database does not answer.
    """
    table = describe_table(read_table_name(options.table), fields, options.key)
    try:
        engine = connect_to_look(options.url, owner)
    except SinkError as error:
        yield Finding("sink.options.url", str(error).removeprefix("sink.options.url").lstrip(": "))
        return
    if engine is None:
        yield Finding(
            "sink.options.url", "the file is not there: it would be made, and the table", is_fine=True
        )
        return
    try:
        with transaction(engine) as connection:
            yield from _compare(sa.inspect(connection), table, fields)
    finally:
        engine.dispose()


def _compare(inspector: Inspector, table: Table, fields: Sequence[Field]) -> Iterator[Finding]:
    if not is_there(inspector, table):
        yield Finding(_TABLE, f"the table {table} is not there: it would be made", is_fine=True)
        return
    for fault in table_faults(inspector, table):
        yield Finding(_TABLE, fault)
    theirs = by_name(inspector.get_columns(table.name, schema=table.schema), inspector.dialect)
    for field, column in zip(fields, table.columns, strict=True):
        there = theirs.get(folded(column.name, inspector.dialect))
        if there is not None:
            yield from _compare_types(field, column.type, there["type"], inspector.dialect)


def _compare_types(field: Field, ours: Any, theirs: Any, dialect: Dialect) -> Iterator[Finding]:
    """SQLite takes anything anywhere; PostgreSQL refuses what it cannot convert by itself."""
    kind, kept = _family(ours, dialect), _family(theirs, dialect)
    if kind is None or kept is None or kind == kept or kind in _TAKEN.get(kept, ()):
        return
    shown = theirs.compile(dialect=dialect)
    said = f"the column {field.name} is of type {shown} there, and the query yields {_shown(field.type)}"
    is_loose = dialect.name == "sqlite"
    yield Finding(_TABLE, f"{said}{', which SQLite keeps as it comes' * is_loose}", is_fine=is_loose)


_FAMILIES: Final[tuple[tuple[str, type[sa.types.TypeEngine[Any]]], ...]] = (
    ("boolean", sa.Boolean),
    ("whole number", sa.Integer),
    ("number", sa.Numeric),
    ("text", sa.String),
    ("bytes", sa.LargeBinary),
    ("date", sa.Date),
    ("instant", sa.DateTime),
    ("time", sa.Time),
)
_TAKEN: Final = {
    "number": {"whole number"},
    "whole number": {"number"},
    "instant": {"date"},
    "date": {"instant"},
}
"""What PostgreSQL converts by itself when it is written into another column, rounding if need be."""


def _family(kind: Any, dialect: Dialect) -> str | None:
    """None for what is not one of those that Spark's types become."""
    plain = kind.load_dialect_impl(dialect) if isinstance(kind, sa.types.TypeDecorator) else kind
    return next((name for name, base in _FAMILIES if isinstance(plain, base)), None)


def _shown(kind: str | dict[str, Any]) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type"))
