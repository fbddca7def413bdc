"""Rows in a SQL database: SQLite by default, PostgreSQL by another URL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Table, and_, bindparam, delete, event, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from manager.core.rows import Dropped, Row
from manager.storage.base import StorageError
from manager.storage.file import DatabaseFile, file_of
from manager.storage.migrate import VERSION_TABLE, upgrade
from manager.storage.schema import LOAD_ORDER, TABLES
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy.sql.dml import Delete

    from manager.core.rows import Change

INSERTS: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
TROUBLE = (SQLAlchemyError, OSError, sqlite3.Error)
_TOUCH = text(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # noqa: S608 - a constant


class SqlStorage:
    """`Storage` over an async SQLAlchemy engine."""

    def __init__(self, url: str) -> None:
        self._engine = _make_engine(url)
        dialect = self._engine.dialect.name
        self._upserts = {kind: _upsert(table, dialect) for kind, table in TABLES.items()}
        self._deletes = {kind: _delete(table) for kind, table in TABLES.items()}
        self._file: DatabaseFile | None = None

    async def open(self) -> None:
        """Connect and migrate."""
        try:
            self._try_sqlite()
            async with self._engine.begin() as connection:
                await connection.run_sync(upgrade)
            self._file = file_of(self._engine)
        except TROUBLE as error:
            await self._engine.dispose()
            raise StartupError(f"--database {self._shown_url()}: {_first_line(error)}") from error
        except StartupError:
            await self._engine.dispose()
            raise

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        """Read every table once."""
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        try:
            async with self._engine.connect() as connection:
                for kind, table in TABLES.items():
                    for row in await _read(connection, kind, table, groups):
                        rows[row.group].append(row)
        except TROUBLE as error:
            raise StorageError(_first_line(error)) from error
        return dict(rows)

    async def commit(self, changes: Sequence[Change]) -> None:
        """One transaction, one statement a table and direction."""
        upserts, deletes = _sort_out(changes)
        try:
            self._check_file()
            async with self._engine.begin() as connection:
                for kind, keys in deletes.items():
                    await connection.execute(self._deletes[kind], keys)
                for kind, rows in upserts.items():
                    await connection.execute(self._upserts[kind], rows)
            self._check_file()
        except TROUBLE as error:
            raise StorageError(_first_line(error)) from error

    async def probe(self) -> None:
        """Write the schema's version once more."""
        try:
            self._check_file()
            async with self._engine.begin() as connection:
                await connection.execute(_TOUCH)
            self._check_file()
        except TROUBLE as error:
            raise StorageError(_first_line(error)) from error

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.shield(self._engine.dispose())

    def _try_sqlite(self) -> None:
        """Open an SQLite file plainly first: aiosqlite would leave a thread that outlives the loop."""
        if self._engine.dialect.name == "sqlite":
            arguments, options = self._engine.dialect.create_connect_args(self._engine.url)
            with closing(sqlite3.connect(arguments[0], uri=options.get("uri", False))) as connection:
                _set_up_sqlite(connection, None)

    def _check_file(self) -> None:
        """What was written to a file that is no longer there would be gone with the process."""
        if self._file is not None:
            self._file.check()

    def _shown_url(self) -> str:
        return self._engine.url.render_as_string(hide_password=True)


def _make_engine(url: str) -> AsyncEngine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() not in INSERTS:
            raise StartupError(f"--database: {parsed.get_backend_name()} is neither sqlite nor postgresql")
        engine = create_async_engine(parsed)
    except (ArgumentError, InvalidRequestError, NoSuchModuleError) as error:
        raise StartupError(
            f"--database: not a SQLAlchemy URL with an asyncio driver: {_first_line(error)}"
        ) from error
    except ModuleNotFoundError as error:
        raise StartupError(
            f"--database: the driver {error.name} is not installed (sparkherd[postgres])"
        ) from error
    if parsed.get_backend_name() == "sqlite":
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: object) -> None:
    """Committed means on the disk; readers and the writer do not wait for one another."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


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
) -> list[Row]:
    statement = select(table)
    if groups is not None:
        statement = statement.where(table.c.group.in_(groups))
    if kind in LOAD_ORDER:
        statement = statement.order_by(table.c[LOAD_ORDER[kind]])
    result = await connection.execute(statement)
    return [kind(**row) for row in result.mappings()]


def _first_line(error: BaseException) -> str:
    """What the database said; SQLAlchemy puts statement and parameters on the lines after it."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
