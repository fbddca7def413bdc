"""Engines for sinks: SQLite and PostgreSQL, set up so that many tasks can write at the same time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL, Connection, Engine

LOCK_TIMEOUT_S = 60
"""How long a writer waits for the others: they queue, and none of them holds the lock for long."""
IDLE_TRANSACTION_TIMEOUT_MS = 30_000
"""When PostgreSQL ends the transaction of a worker that froze inside it, so that the next owner can go on."""

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_ADVISORY_LOCK = 0x73706172


def connect(url: str) -> Engine:
    """An engine for `url`; asynchronous drivers are replaced by the synchronous one of the same database.

    Raises:
        SinkError: the URL is of no kind that this sink can write to.
    """
    parsed = _parse(url)
    try:
        engine = sa.create_engine(parsed, hide_parameters=True, pool_size=1, **_settings(parsed))
    except ModuleNotFoundError as error:
        raise SinkError(
            f"the driver {error.name} of sink.options.url is not installed on this worker: "
            "pip install 'sparkherd[postgres]'"
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def place(engine: Engine) -> str:
    """The database as a person may see it: without the password."""
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction, committed at the end or rolled back as a whole.

    Raises:
        SinkError: the database refused; its own words, without statements or values.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        first_line = str(reason).strip().partition("\n")[0]
        raise SinkError(f"the database {place(engine)} refused: {first_line}") from error


def lock_tables(connection: Connection) -> None:
    """Let nobody else create a table until the end of the transaction.

    PostgreSQL's CREATE TABLE IF NOT EXISTS fails when two do it at once; SQLite has one writer anyhow.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))


def _parse(url: str) -> URL:
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise SinkError("sink.options.url is no SQLAlchemy URL, such as sqlite:///out.db") from None
    backend = parsed.get_backend_name()
    if backend not in _DRIVERS:
        raise SinkError(f"sink.options.url must be of {' or '.join(_DRIVERS)}, not {backend}")
    if backend == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise SinkError("sink.options.url must name a file: rows in memory would be lost with the worker")
    return parsed.set(drivername=_DRIVERS[backend])


def _settings(url: URL) -> dict[str, Any]:
    """Positional parameters on both, so that rows go to the driver as they are."""
    if url.get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": LOCK_TIMEOUT_S}}
    session = f"-c idle_in_transaction_session_timeout={IDLE_TRANSACTION_TIMEOUT_MS}"
    return {"paramstyle": "format", "connect_args": {"options": session}, "pool_pre_ping": True}


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """Readers and the writer apart (WAL); a commit is on disk before Spark is told of it (FULL)."""
    del record
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_immediate(connection: Connection) -> None:
    """Take the write lock before the fence is read; what is read under a later one could be old by then."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
