"""Statements that make a table what a query needs; texts only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from worker.sinks.column_types import SQL_NAMES, quoted
from worker.sinks.column_types import type_sql as sql_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.sinks.base import Field
    from worker.sinks.iceberg.columns import Fit
    from worker.sinks.iceberg.naming import TableName

_NAMES: Final = {**SQL_NAMES, "short": "int", "byte": "int"}
"""Iceberg has no numbers as small as that."""


def alterations(name: TableName, fit: Fit, partition_fields: Iterable[str]) -> Iterator[str]:
    """What makes the table fit for a query's rows, one change of the table each.

    Args:
        name: the table.
        fit: the columns.
        partition_fields: those that the table is to be given besides, as of `layout.partition_fields`.
    """
    table = f"ALTER TABLE {name.sql}"
    if fit.add:
        yield f"{table} ADD COLUMNS ({', '.join(map(_column, fit.add))})"
    for field in fit.widen:
        yield f"{table} ALTER COLUMN {quoted(field.name)} TYPE {type_sql(field.type)}"
    for each in partition_fields:
        yield f"{table} ADD PARTITION FIELD {each}"


def _column(field: Field) -> str:
    return f"{quoted(field.name)} {type_sql(field.type)}"


def type_sql(kind: Any) -> str:
    """A type of Spark's JSON as its SQL has it, where the table is Iceberg's."""
    return sql_of(kind, _NAMES)
