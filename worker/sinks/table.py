"""The table that a task's rows go to: made from the query's columns, or checked against them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from definition.tables import MAX_BYTES
from worker.sinks.database import lock_tables
from worker.sinks.errors import SchemaError
from worker.sinks.types import column_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Dialect, Insert, Inspector, Table
    from sqlalchemy.engine.interfaces import ReflectedColumn

    from definition.tables import TableName
    from worker.sinks.base import Field


def describe_table(name: TableName, fields: Sequence[Field], key: Sequence[str]) -> Table:
    """The table `name` with the query's columns; `key` becomes its primary key.

    All names are quoted: SQLAlchemy does not know every word that SQLite reserves.

    Raises:
        SchemaError: a column has a type or a name that no table can have, or the key is not among them.
    """
    names = [field.name for field in fields]
    refuse_twins(names)
    keys = {_find(column, names) for column in key}
    columns = [
        sa.Column(field.name, kind, primary_key=field.name in keys, autoincrement=False, quote=True)
        for field, kind in zip(fields, column_types(fields), strict=True)
    ]
    return sa.Table(name.table, sa.MetaData(), *columns, quote=True, schema=name.schema, quote_schema=True)


def ensure_table(connection: Connection, table: Table) -> None:
    """Create `table` if there is none of its name, else see whether its rows fit in.

    Raises:
        SchemaError: the existing table lacks a column, wants one more, or lets a key occur twice.
    """
    lock_tables(connection)
    inspector = sa.inspect(connection)
    if not is_there(inspector, table):
        connection.execute(CreateTable(table))
        return
    for fault in table_faults(inspector, table):
        raise SchemaError(fault)


def is_there(inspector: Inspector, table: Table) -> bool:
    """Whether the database has a table of that name.

    Raises:
        SchemaError: it could not be made either.
    """
    if inspector.dialect.name == "postgresql":
        _refuse_long_names(table)
    if table.schema is not None and not inspector.has_schema(table.schema):
        raise SchemaError(
            f"sink.options.table names the schema {table.schema}, which the database does not have, or does"
            " not show: create it first"
        )
    return inspector.has_table(table.name, schema=table.schema)


def table_faults(inspector: Inspector, table: Table) -> Iterator[str]:
    """Why the rows of `table` do not fit into the one of that name that is there."""
    existing = inspector.get_columns(table.name, schema=table.schema)
    yield from _column_faults(table, existing, inspector.dialect)
    if table.primary_key.columns:
        yield from _key_faults(table, _unique_sets(inspector, table))


def names_of(table: Table) -> set[str]:
    """All names in a statement about `table`, as a database tells of them."""
    return told_names(table.schema, table.name) | {str(column.name) for column in table.columns}


def told_names(schema: str | None, table: str) -> set[str]:
    """The names of a table, with its schema and without it, and of the schema."""
    return {str(table)} if schema is None else {str(table), str(schema), f"{schema}.{table}"}


def _refuse_long_names(table: Table) -> None:
    """PostgreSQL cuts them off, and would not be found to have them when it is asked again."""
    for column in table.columns:
        if len(column.name.encode(errors="replace")) > MAX_BYTES:
            raise SchemaError(f"the name of column {column.name} is longer than {MAX_BYTES} bytes")


def insert_statement(table: Table, dialect: Dialect) -> str:
    """The INSERT of one row by position; with a key, the newest row takes the place of an earlier one."""
    return str(_replacing(_insert(table, dialect), table).compile(dialect=dialect))


def insert_from(table: Table, rows: sa.Select[Any], dialect: Dialect) -> Insert:
    """The INSERT of all that `rows` selects; none of its rows may have the key of another."""
    names = [column.name for column in table.columns]
    return _replacing(_insert(table, dialect).from_select(names, rows), table)


def _insert(table: Table, dialect: Dialect) -> Any:
    return (sqlite if dialect.name == "sqlite" else postgresql).insert(table)


def _replacing(insert: Any, table: Table) -> Insert:
    """With what is to happen to a row whose key is there already."""
    keys = list(table.primary_key.columns)
    if not keys:
        return cast("Insert", insert)
    newest = {column: insert.excluded[column.name] for column in table.columns if not column.primary_key}
    if not newest:
        return cast("Insert", insert.on_conflict_do_nothing(index_elements=keys))
    return cast("Insert", insert.on_conflict_do_update(index_elements=keys, set_=newest))


def refuse_twins(names: Sequence[str]) -> None:
    """Spark lets two columns have one name, and SQLite tells none apart by case."""
    counts = Counter(name.lower() for name in names)
    if twins := [name for name in names if counts[name.lower()] > 1]:
        raise SchemaError(f"the query has several columns of the name {twins[0]}: give each its own with AS")


def _find(key: str, names: Sequence[str]) -> str:
    """The column that `key` means; like Spark, whatever its case."""
    for name in names:
        if name.lower() == key.lower():
            return name
    raise SchemaError(f"sink.options.key names {key}, but the query's columns are {', '.join(names)}")


def by_name(existing: Iterable[ReflectedColumn], dialect: Dialect) -> dict[str, ReflectedColumn]:
    """The columns of a table, by their names as `folded` has them."""
    return {folded(column["name"], dialect): column for column in existing}


def folded(name: str, dialect: Dialect) -> str:
    """The name of a column as the database tells it from others."""
    return _lower(name) if dialect.name == "sqlite" else name


def _column_faults(table: Table, existing: Iterable[ReflectedColumn], dialect: Dialect) -> Iterator[str]:
    ours = {folded(column.name, dialect) for column in table.columns}
    theirs = by_name(existing, dialect)
    if missing := [column.name for column in table.columns if folded(column.name, dialect) not in theirs]:
        yield f"the table {table} has no column {', '.join(missing)}, which the query yields"
    wanted = [column["name"] for name, column in theirs.items() if name not in ours and _is_required(column)]
    if wanted:
        yield f"the table {table} requires {', '.join(wanted)}, which the query does not yield"


def _is_required(column: ReflectedColumn) -> bool:
    filled = column.get("default") is not None or column.get("autoincrement") is True
    return not (column["nullable"] or filled or column.get("computed") or column.get("identity"))


def _unique_sets(inspector: Inspector, table: Table) -> list[set[str]]:
    """Each set of columns of which the database lets no combination occur twice."""
    name, schema = table.name, table.schema
    sets = [inspector.get_pk_constraint(name, schema)["constrained_columns"]]
    sets += [constraint["column_names"] for constraint in inspector.get_unique_constraints(name, schema)]
    sets += [
        [name for name in index["column_names"] if name is not None]
        for index in inspector.get_indexes(name, schema)
        if index["unique"]
    ]
    return [{_lower(name) for name in columns} for columns in sets]


def _key_faults(table: Table, unique: Sequence[set[str]]) -> Iterator[str]:
    key = [column.name for column in table.primary_key.columns]
    if {_lower(name) for name in key} not in unique:
        yield f"the table {table} has no unique index on {', '.join(key)}, the key of this upsert"


def _lower(name: str) -> str:
    """SQLAlchemy's own kind of string does not give up the case of a name that is to be quoted."""
    return str(name).lower()
