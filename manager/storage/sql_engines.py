"""SQLAlchemy's engines: what each connection promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

CONNECT_S = 5
"""How long a server may take to let us in."""
LOCK_MS = 5000
"""How long a statement waits for whoever holds what it needs."""
STATEMENT_MS = 5000
"""How long a server lets one statement run."""


def sqlite_engine(url: URL) -> Engine:
    """For SQLite, through Python's own driver, whichever the URL names."""
    engine = create_engine(url.set(drivername="sqlite"), connect_args={"check_same_thread": False})
    event.listen(engine, "connect", set_up_sqlite)
    return engine


def postgresql_engine(url: URL) -> AsyncEngine:
    """For PostgreSQL, through an asyncio driver."""
    is_asyncpg = url.get_driver_name() == "asyncpg"
    engine = create_async_engine(
        url,
        # A conditional statement that had to wait looks again at what the other one left behind.
        isolation_level="READ COMMITTED",
        connect_args={"timeout" if is_asyncpg else "connect_timeout": CONNECT_S},
    )
    event.listen(engine.sync_engine, "connect", set_up_postgresql)
    return engine


def set_up_sqlite(connection: Any, _: object) -> None:
    """Committed means on the disk; readers and the writer do not wait for one another."""
    connection.text_factory = _text
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


def _text(stored: bytes) -> str | bytes:
    """What is no UTF-8 stays as it is: the driver would not give out any row of the statement."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _execute(connection: Any, *statements: str) -> None:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    cursor.close()
