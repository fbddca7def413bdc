"""Rows in a SQL database: SQLite by default, PostgreSQL by another URL."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Table, and_, bindparam, delete, select, text, union
from sqlalchemy.dialects import postgresql, sqlite

from manager.cluster.slots import slot_of
from manager.core.rows import Dropped, Row
from manager.storage.assignors import assignors
from manager.storage.base import NO_FENCE, StorageError
from manager.storage.engine import first_line, make_engine, transaction
from manager.storage.event_log import SqlEventLog
from manager.storage.file import DatabaseFile, file_of, path_of
from manager.storage.leases import LeaseTable, hold_fence
from manager.storage.migrate import VERSION_TABLE, upgrade, with_schema
from manager.storage.numbering import append
from manager.storage.schema import LOAD_ORDER, TABLES
from manager.storage.summaries import summaries
from manager.storage.tallies import tallies
from manager.storage.tokens import TokenTable
from protocol.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql.dml import Delete

    from manager.core.rows import Change, Record
    from manager.core.tallies import Tally
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.groups import GroupSummary

INSERTS: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
MANY = 10_000
"""Names in one statement; databases take some 32,000 parameters."""
NAMES = union(*(select(table.c.group) for table in TABLES.values()))
"""Every group that anything is stored of."""
_TOUCH = text(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # noqa: S608 - a constant


class SqlStorage:
    """`Storage` over an async SQLAlchemy engine."""

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url)
        dialect = self._engine.dialect.name
        self._upserts = {kind: _upsert(table, dialect) for kind, table in TABLES.items()}
        self._deletes = {kind: _delete(table) for kind, table in TABLES.items()}
        self.events = SqlEventLog(self._engine)
        self._file: DatabaseFile | None = None
        self.leases = LeaseTable(self._engine)
        self.tokens = TokenTable(self._engine)

    async def open(self) -> None:
        """Connect and migrate."""
        await with_schema(self._engine, upgrade)
        self._file = file_of(self._engine)

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        """Read every table once."""
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        async with transaction(self._engine) as connection:
            for kind, table in TABLES.items():
                async for row in _read(connection, kind, table, groups):
                    rows[row.group].append(row)
        return dict(rows)

    @property
    def is_shared(self) -> bool:
        """Whether other managers may use the database as well."""
        return self._engine.dialect.name != "sqlite"

    @property
    def path(self) -> Path | None:
        """The database's file; None for servers and databases in memory."""
        return path_of(self._engine)

    async def summaries(self) -> list[GroupSummary]:
        """A line for each group that is stored, by name.

        Raises:
            StorageError: try again later.
        """
        async with transaction(self._engine) as connection:
            return await summaries(connection)

    async def assignors(self) -> list[GroupAssignors]:
        """What the members of each stored group announce, by name.

        Raises:
            StorageError: try again later.
        """
        async with transaction(self._engine) as connection:
            return await assignors(connection)

    async def tallies(self) -> list[Tally]:
        """The figures of each group that is stored, by name.

        Raises:
            StorageError: try again later.
        """
        async with transaction(self._engine) as connection:
            return await tallies(connection)

    async def load_slots(self, slots: Collection[int], of: int) -> dict[str, list[Row]]:
        """Read all names, then the rows of those that belong to the slots."""
        async with transaction(self._engine) as connection:
            names = set((await connection.execute(NAMES)).scalars())
        wanted = set(slots)
        return await self.load([name for name in names if slot_of(name, of) in wanted])

    async def commit(self, changes: Sequence[Record], fence: Mapping[int, int] = NO_FENCE) -> None:
        """One transaction, one statement a table and direction; the fence first, events last."""
        events = [change for change in changes if isinstance(change, Event)]
        upserts, deletes = _sort_out([change for change in changes if not isinstance(change, Event)])
        async with self._writing() as connection:
            await hold_fence(connection, fence)
            for kind, keys in deletes.items():
                await connection.execute(self._deletes[kind], keys)
            for kind, rows in upserts.items():
                await connection.execute(self._upserts[kind], rows)
            await append(connection, events)

    async def probe(self) -> None:
        """Write the schema's version once more."""
        async with self._writing() as connection:
            await connection.execute(_TOUCH)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction; what is written to a file that is not there any more is gone with the process."""
        async with transaction(self._engine) as connection:
            self._check_file()
            yield connection
        self._check_file()

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.shield(self._engine.dispose())

    def _check_file(self) -> None:
        try:
            if self._file is not None:
                self._file.check()
        except OSError as error:
            raise StorageError(first_line(error)) from error


def _upsert(table: Table, dialect: str) -> sqlite.Insert | postgresql.Insert:
    statement = INSERTS[dialect](table)
    key = [column.name for column in table.primary_key]
    others = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in key}
    return statement.on_conflict_do_update(index_elements=key, set_=others)


def _delete(table: Table) -> Delete:
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
            upserts[kind].append(msgspec.structs.asdict(change))
    return upserts, deletes


def _key_parameters(kind: type[Row]) -> list[str]:
    return [f"key_{column.name}" for column in TABLES[kind].primary_key.columns]


async def _read(
    connection: AsyncConnection, kind: type[Row], table: Table, groups: Collection[str] | None
) -> AsyncIterator[Row]:
    statement = select(table)
    if kind in LOAD_ORDER:
        statement = statement.order_by(table.c[LOAD_ORDER[kind]])
    for some in [None] if groups is None else _portions(tuple(groups)):
        wanted = statement if some is None else statement.where(table.c.group.in_(some))
        for row in (await connection.execute(wanted)).mappings():
            yield kind(**row)


def _portions(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + MANY] for start in range(0, len(names), MANY))
