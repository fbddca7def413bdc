"""In which schemas of a PostgreSQL the sink keeps what is its own: the fence, and staging.

There may be several fence tables: each role makes its own, an entry point's `fence.guard` makes one where its
connection looks, and an administrator may copy one or hand it over. `worker.sinks.fence_rows` says which of
them counts for a task; here is which of them are looked at, and where one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from definition.sinks.sql import FENCE_TABLE
from worker.sinks.database import lock_tables
from worker.sinks.fence_table import FenceTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

_FENCES = sa.text("""\
SELECT nspname FROM pg_class AS t JOIN pg_namespace AS s ON s.oid = relnamespace
CROSS JOIN LATERAL (
  SELECT pg_get_userbyid(relowner) = current_user, array_position(current_schemas(false), nspname)
) AS a (ours, nth)
WHERE relname = :table AND relkind IN ('r', 'p') AND (nth IS NOT NULL OR ours AND :anywhere)
AND (ours OR has_table_privilege(t.oid, 'SELECT')
  AND has_table_privilege(t.oid, 'INSERT') AND has_table_privilege(t.oid, 'UPDATE'))
ORDER BY (ours AND :anywhere) DESC, nth NULLS LAST, t.oid
""")
_OPEN_TO_US = sa.text("""\
SELECT schema FROM unnest(CAST(:schemas AS text[])) WITH ORDINALITY AS given (schema, nth)
WHERE schema IS NOT NULL AND has_schema_privilege(schema, 'CREATE') ORDER BY nth LIMIT 1
""")
_CURRENT = sa.text("SELECT current_schema()")


def fence_tables(connection: Connection, *, anywhere: bool) -> list[FenceTable]:
    """The fence tables that the role may write to, in the order in which a new task takes them.

    Args:
        connection: its `search_path` counts.
        anywhere: also those that the role owns outside of that path, and those it owns first.
    """
    if connection.dialect.name != "postgresql":
        fence = FenceTable()
        return [fence] if fence.exists(connection) else []
    schemas = connection.execute(_FENCES, {"table": FENCE_TABLE, "anywhere": anywhere}).scalars()
    return [FenceTable(schema) for schema in schemas]


def make_fence(connection: Connection, *, anywhere: bool, beside: str | None = None) -> FenceTable:
    """The first fence table that the role may write to, made if there is none.

    Args:
        connection: it is made in the first schema of its `search_path`.
        anywhere: as in `fence_tables`.
        beside: the schema where it is made if the role may not create there.
    """
    lock_tables(connection)
    if there := fence_tables(connection, anywhere=anywhere):
        return there[0]
    fence = FenceTable(creatable(connection, [current_schema(connection), beside]))
    fence.create(connection)
    return fence


def current_schema(connection: Connection) -> str | None:
    """Where a table would be made that is named without a schema; None on SQLite, and if there is none."""
    if connection.dialect.name != "postgresql":
        return None
    return connection.execute(_CURRENT).scalar()


def creatable(connection: Connection, schemas: Sequence[str | None]) -> str | None:
    """The first of `schemas` that the role may create tables in; None on SQLite."""
    if connection.dialect.name != "postgresql":
        return None
    return connection.execute(_OPEN_TO_US, {"schemas": list(schemas)}).scalar()
