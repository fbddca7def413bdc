"""The connections to the database: which ones there are, and what each promises."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from manager.storage.base import StorageError
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import URL

BACKENDS = ("sqlite", "postgresql")
TROUBLE = (SQLAlchemyError, OSError, sqlite3.Error)
"""What a database that is away, busy, full or beside itself raises."""

CONNECT_S = 5
"""How long a server may take to let us in."""
LOCK_MS = 5000
"""How long a statement waits for whoever holds what it needs."""
STATEMENT_MS = 5000
"""How long a server lets one statement run."""
ANSWER_S = 8.0
"""How long a transaction may take in all, as seen from here: a server may be frozen or cut off."""


def make_engine(url: str) -> AsyncEngine:
    """An engine for `url`; nothing is connected yet.

    Raises:
        StartupError: the URL is not one this can use; the text names the setting.
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend not in BACKENDS:
            raise StartupError(f"--database: {backend} is neither sqlite nor postgresql")
        engine = create_async_engine(parsed, **_options(parsed))
    except (ArgumentError, InvalidRequestError, NoSuchModuleError) as error:
        raise StartupError(
            f"--database: not a SQLAlchemy URL with an asyncio driver: {first_line(error)}"
        ) from error
    except ModuleNotFoundError as error:
        raise StartupError(
            f"--database: the driver {error.name} is not installed (sparkherd[postgres])"
        ) from error
    event.listen(engine.sync_engine, "connect", set_up_sqlite if backend == "sqlite" else set_up_postgresql)
    return engine


def _options(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {}
    return {
        # A conditional statement that had to wait looks again at what the other one left behind.
        "isolation_level": "READ COMMITTED",
        "connect_args": {"timeout" if url.get_driver_name() == "asyncpg" else "connect_timeout": CONNECT_S},
    }


def set_up_sqlite(connection: Any, _: object) -> None:
    """Committed means on the disk; readers and the writer do not wait for one another."""
    _execute(
        connection, "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", f"PRAGMA busy_timeout={LOCK_MS}"
    )


def set_up_postgresql(connection: Any, _: object) -> None:
    """Committed means on the disk; nothing waits for ever, and what was cut off does not keep its locks."""
    _execute(
        connection,
        "SET synchronous_commit = on",
        f"SET statement_timeout = {STATEMENT_MS}",
        f"SET lock_timeout = {LOCK_MS}",
        f"SET idle_in_transaction_session_timeout = {STATEMENT_MS}",
    )
    connection.commit()


def _execute(connection: Any, *statements: str) -> None:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    cursor.close()


def try_sqlite(engine: AsyncEngine) -> None:
    """Open an SQLite file plainly first: aiosqlite would leave a thread that outlives the loop."""
    if engine.dialect.name == "sqlite":
        arguments, options = engine.dialect.create_connect_args(engine.url)
        with closing(sqlite3.connect(arguments[0], uri=options.get("uri", False))) as connection:
            set_up_sqlite(connection, None)


@asynccontextmanager
async def transaction(engine: AsyncEngine, within_s: float = ANSWER_S) -> AsyncIterator[AsyncConnection]:
    """All that is executed inside, or nothing of it.

    Raises:
        StorageError: the database did not do it, or it is not known whether it did.
    """
    try:
        async with asyncio.timeout(within_s if engine.dialect.name == "postgresql" else None):
            async with engine.begin() as connection:
                yield connection
    except TimeoutError as error:
        raise StorageError(f"the database gave no answer within {within_s:g} s") from error
    except TROUBLE as error:
        raise StorageError(first_line(error)) from error


def shown(engine: AsyncEngine) -> str:
    """The URL without its password, for errors."""
    return engine.url.render_as_string(hide_password=True)


def first_line(error: BaseException) -> str:
    """What the database said; SQLAlchemy puts statement and parameters on the lines after it."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
