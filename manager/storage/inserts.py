"""Inserts of many rows, taken apart once: SQLAlchemy's own way to a row takes longer than SQLite's.

What the statement is, in which order it takes its values and how each is bound is SQLAlchemy's word, as ever.
It is only not asked again for every row of every transaction.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import StatementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Dialect, Insert, Table

    Bind = Callable[[Any], Any] | None


def insert_into(table: Table, dialect: str) -> sqlite.Insert | postgresql.Insert:
    """An insert that can be told what to do on a conflict, for which SQL has no common words."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def insert_rows(connection: Connection, statement: Insert, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert `rows`, at least one, each with a value for every column of the table.

    Args:
        connection: in whose transaction.
        statement: the insert, without values; the same object every time.
        rows: values by the names of columns.

    Raises:
        StatementError: a value cannot be bound; as SQLAlchemy says it.
    """
    sql, binds, by_position = _take_apart(statement, connection.dialect)
    bound = _in_order if by_position else _by_name
    try:
        parameters = [bound(row, binds) for row in rows]
    except (TypeError, ValueError, LookupError) as error:
        raise StatementError(str(error), sql, None, error) from error
    connection.exec_driver_sql(sql, parameters)


def _in_order(row: Mapping[str, Any], binds: Sequence[tuple[str, Bind]]) -> tuple[Any, ...]:
    return tuple([row[name] if bind is None else bind(row[name]) for name, bind in binds])


def _by_name(row: Mapping[str, Any], binds: Sequence[tuple[str, Bind]]) -> dict[str, Any]:
    return {name: row[name] if bind is None else bind(row[name]) for name, bind in binds}


@cache
def _take_apart(statement: Insert, dialect: Dialect) -> tuple[str, list[tuple[str, Bind]], bool]:
    """The SQL, the columns it takes with what binds each, and whether it takes them by position."""
    compiled = statement.compile(dialect=dialect)
    processors: dict[str, Bind] = {
        column.name: column.type.dialect_impl(dialect).bind_processor(dialect)
        for column in statement.table.columns
    }
    by_position = compiled.positiontup
    names = compiled.binds if by_position is None else by_position
    return compiled.string, [(name, processors[name]) for name in names], by_position is not None
