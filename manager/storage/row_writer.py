"""The rows that groups are made of: writing what has changed."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, bindparam, delete

from manager.core.stored_rows import Dropped, GroupRow, Row
from manager.storage.inserts import insert_into, insert_rows
from manager.storage.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.sql.dml import Delete

    from manager.core.stored_rows import Change


def write_rows(connection: Connection, changes: Sequence[Change]) -> None:
    """Keep and drop rows, with one statement a table and direction; for one key the last change counts."""
    upserts, deletes = _sort_out(changes)
    for kind, keys in deletes.items():
        connection.execute(_delete(kind), keys)
    for kind, rows in upserts.items():
        insert_rows(connection, _upsert(kind, connection.dialect.name), rows)


@cache
def _upsert(kind: type[Row], dialect: str) -> sqlite.Insert | postgresql.Insert:
    table = TABLES[kind]
    statement = insert_into(table, dialect)
    key = [column.name for column in table.primary_key]
    others = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in key}
    return statement.on_conflict_do_update(index_elements=key, set_=others)


@cache
def _delete(kind: type[Row]) -> Delete:
    table = TABLES[kind]
    key = table.primary_key.columns
    return delete(table).where(and_(*(column == bindparam(f"key_{column.name}") for column in key)))


def _sort_out(
    changes: Sequence[Change],
) -> tuple[dict[type[Row], list[dict[str, Any]]], dict[type[Row], list[dict[str, Any]]]]:
    """The last change of each key, by table, as statement parameters."""
    last: dict[tuple[type[Row], tuple[Any, ...]], Change] = {}
    for change in changes:
        kind = change.kind if isinstance(change, Dropped) else type(change)
        last[kind, change.key] = change
    upserts: defaultdict[type[Row], list[dict[str, Any]]] = defaultdict(list)
    deletes: defaultdict[type[Row], list[dict[str, Any]]] = defaultdict(list)
    for (kind, key), change in last.items():
        if isinstance(change, Dropped):
            deletes[kind].append(dict(zip(_key_parameters(kind), key, strict=True)))
        else:
            upserts[kind].append(_stored(change))
    return upserts, deletes


def _stored(row: Row) -> dict[str, Any]:
    """What stands in the columns; whether a group rebalances when it is loaded is told by its state there."""
    values = msgspec.structs.asdict(row)
    return {**values, "state": row.state} if isinstance(row, GroupRow) else values


def _key_parameters(kind: type[Row]) -> list[str]:
    return [f"key_{column.name}" for column in TABLES[kind].primary_key.columns]
