"""A database as the storage sees it: a place where work is done in transactions, whole or not at all.

Work is a plain function of a SQLAlchemy connection. Where it runs is the database's business: SQLite is a
library that blocks, so a transaction has a thread for its whole length; a server is spoken to through the
event loop, and can be given up on. Changing threads for each statement, as asyncio drivers for SQLite do,
took longer than the statements.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError, SQLAlchemyError

from manager.storage.base import StorageError
from manager.storage.sql_engines import postgresql_engine, sqlite_engine
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import URL, Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

TROUBLE = (SQLAlchemyError, OSError, sqlite3.Error)
"""What a database that is away, busy, full or beside itself raises."""
ANSWER_S = 8.0
"""How long a transaction at a server may take in all, as seen from here: it may be frozen or cut off."""
THREADS = 5
"""Transactions on one SQLite file at a time; there is one writer among them, the others read."""


class Database(Protocol):
    """Where rows are kept."""

    url: URL

    @property
    def path(self) -> Path | None:
        """The file of it; None for servers and databases in memory."""
        ...

    async def transact(self, work: Callable[[Connection], T], within_s: float | None = ANSWER_S) -> T:
        """Do all that `work` does, or nothing of it; returns what it returns.

        Args:
            work: must not keep the connection.
            within_s: how long a server may take; None for ever. SQLite itself waits for no one that long.

        Raises:
            StorageError: the database did not do it, or it is not known whether it did.
        """
        ...

    async def read(self, work: Callable[[Connection, Callable[[], None]], T]) -> T:
        """Do what takes the longer the more there is; returns what it returns.

        Args:
            work: must not keep the connection; calls what it is given besides whenever the database has
                answered something. A server may take `ANSWER_S` from one such call to the next.

        Raises:
            StorageError: the database did not do it.
        """
        ...

    async def close(self) -> None:
        """Let go of every connection; whoever needs one again afterwards gets a new one."""
        ...


def database_at(url: str) -> Database:
    """The database of `url`; nothing is connected yet.

    Raises:
        StartupError: the URL is not one this can use; the text names the setting.
    """
    try:
        parsed = make_url(url)
        match parsed.get_backend_name():
            case "sqlite":
                return SqliteDatabase(parsed)
            case "postgresql":
                return PostgresqlDatabase(parsed)
            case other:
                raise StartupError(f"--database: {other} is neither sqlite nor postgresql")
    except (ArgumentError, InvalidRequestError, NoSuchModuleError) as error:
        raise StartupError(
            f"--database: not a SQLAlchemy URL with an asyncio driver: {first_line(error)}"
        ) from error
    except ValueError:  # its text quotes what it takes for the port: with an @ in it, of the password
        raise StartupError("--database: not a SQLAlchemy URL: its port is no number") from None
    except ModuleNotFoundError as error:
        raise StartupError(
            f"--database: the driver {error.name} is not installed (sparkherd[postgres])"
        ) from error


class SqliteDatabase:
    """A file, or memory: each transaction in one of a few threads of its own."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._engine = sqlite_engine(url)
        self._threads = self._new_threads()

    @property
    def path(self) -> Path | None:
        """As SQLAlchemy would open it; an SQLite URI is not looked into."""
        (place, *_), options = self._engine.dialect.create_connect_args(self.url)
        return None if options.get("uri") or place in {"", ":memory:"} else Path(place)

    async def transact(self, work: Callable[[Connection], T], within_s: float | None = ANSWER_S) -> T:  # noqa: ARG002 - its busy timeout ends it
        """Whoever is cancelled meanwhile does not know whether it happens."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._do, work)
        except TROUBLE as error:
            raise StorageError(first_line(error)) from error

    async def read(self, work: Callable[[Connection, Callable[[], None]], T]) -> T:
        """As any transaction: a file is not silent."""
        return await self.transact(lambda connection: work(connection, lambda: None))

    def _do(self, work: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    async def close(self) -> None:
        """The threads end with their transactions."""
        ending, self._threads = self._threads, self._new_threads()
        await asyncio.shield(asyncio.to_thread(ending.shutdown))
        self._engine.dispose()

    def _new_threads(self) -> ThreadPoolExecutor:
        """None of them runs before it is needed."""
        at_most = 1 if self.path is None else THREADS
        return ThreadPoolExecutor(at_most, thread_name_prefix="sqlite")


class PostgresqlDatabase:
    """A server, spoken to through the event loop."""

    path = None

    def __init__(self, url: URL) -> None:
        self.url = url
        self._engine = postgresql_engine(url)

    async def transact(self, work: Callable[[Connection], T], within_s: float | None = ANSWER_S) -> T:
        """A server that is silent is given up on."""
        async with self._connected(within_s) as (connection, _):
            return await connection.run_sync(work)

    async def read(self, work: Callable[[Connection, Callable[[], None]], T]) -> T:
        """It may be as long as it takes, if only the server says something."""
        loop = asyncio.get_running_loop()
        async with self._connected(ANSWER_S) as (connection, patience):
            return await connection.run_sync(work, lambda: patience.reschedule(loop.time() + ANSWER_S))

    @asynccontextmanager
    async def _connected(
        self, within_s: float | None
    ) -> AsyncIterator[tuple[AsyncConnection, asyncio.Timeout]]:
        try:
            async with asyncio.timeout(within_s) as patience, self._engine.begin() as connection:
                yield connection, patience
        except TimeoutError as error:
            raise StorageError(f"the database gave no answer within {within_s:g} s") from error
        except TROUBLE as error:
            raise StorageError(first_line(error)) from error

    async def close(self) -> None:
        """Connections in use are cut."""
        await asyncio.shield(self._engine.dispose())


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An SQLite file as it was opened; SQLite itself goes on writing to one that was removed."""

    path: Path
    identity: tuple[int, int]

    @classmethod
    def at(cls, path: Path) -> OpenedFile:
        """The file that is there now."""
        found = path.stat()
        return cls(path, (found.st_dev, found.st_ino))

    def check(self) -> None:
        """Make sure that whoever opens the path finds what was written.

        Raises:
            OSError: the file is gone, or another one is in its place.
        """
        if OpenedFile.at(self.path) != self:
            raise OSError(f"{self.path} was replaced by another file; restart the manager to use that one")


def shown(database: Database) -> str:
    """The URL without its password, for errors."""
    return database.url.render_as_string(hide_password=True)


def first_line(error: BaseException) -> str:
    """What the database said; SQLAlchemy puts statement and parameters on the lines after it."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
