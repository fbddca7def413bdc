"""Engines for sinks: SQLite and PostgreSQL, set up so that many tasks can write at the same time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from definition.sinks.urls import url_fault
from worker.sinks.errors import SinkError
from worker.sinks.refusals import public_words
from worker.sinks.shared_dialects import SharedDialects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import URL, Connection, Dialect, Engine

    from worker.sinks.fence import Owner
    from worker.sinks.spare_connection import SpareConnection

CONNECT_TIMEOUT_S = 10
"""How long a PostgreSQL may take to let somebody in; `?connect_timeout=` in the URL is another."""
LOCK_TIMEOUT_S = 60
"""How long a writer waits for the others: they queue, and none of them holds the lock for long.

`?timeout=` in a URL of SQLite's, `?options=-c lock_timeout=` (in ms) in one of PostgreSQL's is another.
"""
LOOK_TIMEOUT_S = 5
"""How long somebody who only looks waits for SQLite's lock."""
RETRY_LOCK_S = 0.01
"""Where SQLite itself does not wait for a lock."""
IDLE_TRANSACTION_TIMEOUT_MS = 10_000
"""When PostgreSQL ends the transaction of a worker that froze inside it; a new owner ends it at once."""

END_SESSION_TIMEOUT_MS = 2000

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_NOT_TAKEN = "sink.options.url has an option of which the database's driver can make nothing"
_ADVISORY_LOCK = 0x73706172
_SESSIONS = sa.text(
    "SELECT pid, application_name FROM pg_stat_activity"
    " WHERE datname = current_database() AND starts_with(application_name, :prefix)"
)


def connect(url: str, owner: Owner, spare: SpareConnection | None = None) -> Engine:
    """An engine for `url`; asynchronous drivers are replaced by the synchronous one of the same database.

    The URL's query is the driver's: connection options of SQLite or libpq. PostgreSQL is told besides for
    whom its sessions work, so that a newer owner can find and end them.

    Args:
        url: of a sink.
        owner: for whom it works.
        spare: its first connection, if there is one already, of the same PostgreSQL.

    Raises:
        SinkError: the URL is of no kind that this sink can write to.
    """
    parsed = _parse(url)
    try:
        _require_known_options(parsed)
        if parsed.get_backend_name() == "postgresql":
            there = None if spare is None else partial(spare.take, _session_name(owner))
            return _DIALECTS.engine(parsed, _postgresql_arguments(parsed, owner), there)
        engine = sa.create_engine(
            parsed, hide_parameters=True, pool_size=1, connect_args=_sqlite_arguments(parsed)
        )
    except ModuleNotFoundError as error:
        raise SinkError(
            f"the driver {error.name} of sink.options.url is not installed on this worker: "
            "pip install 'sparkherd[postgres]'"
        ) from None
    except (ArgumentError, ValueError, TypeError):
        raise SinkError(_NOT_TAKEN) from None
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def is_server(url: str) -> bool:
    """Whether a database of that URL is one that is connected to; raises `SinkError` as `connect` does."""
    return _parse(url).get_backend_name() == "postgresql"


def connect_to_look(url: str, owner: Owner) -> Engine | None:
    """An engine for `url` that can change nothing; None if it is a file of SQLite's that is not there.

    Raises:
        SinkError: as `connect` does.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite":
        return connect(url, owner).execution_options(postgresql_readonly=True)
    path = Path(str(parsed.database))
    if not path.exists():
        return None
    place = f"{path.as_uri()}?mode=ro"
    return sa.create_engine(
        parsed, creator=lambda: sqlite3.connect(place, uri=True, timeout=LOOK_TIMEOUT_S), hide_parameters=True
    )


@contextmanager
def plain_sessions(engine: Engine, owner: Owner) -> Iterator[Engine]:
    """An engine for sessions without what the URL sets in them, such as a `search_path`."""
    if "options" not in engine.url.query:
        yield engine
        return
    url = engine.url.difference_update_query(["options"])
    plain = connect(url.render_as_string(hide_password=False), owner)
    try:
        yield plain
    finally:
        plain.dispose()


def shown(url: str) -> str:
    """The database of `url` as a person may see it; raises `SinkError` as `connect` does."""
    return _shown(_parse(url))


def place(engine: Engine) -> str:
    """The database of an engine as a person may see it."""
    return _shown(engine.url)


def _shown(url: URL) -> str:
    """Without the password, which may be among the options, too."""
    shown = {key: value for key, value in url.query.items() if key in {"host", "port"}}
    return url.set(query=shown).render_as_string(hide_password=True)


@contextmanager
def transaction(
    engine: Engine,
    attached: Mapping[str, Path] = MappingProxyType({}),
    *,
    names: Collection[str] | None = None,
) -> Iterator[Connection]:
    """One transaction, committed at the end or rolled back as a whole.

    Args:
        engine: the database.
        attached: files of SQLite to be seen in the transaction, by the name of the schema each becomes.
        names: where rows are written, those that an error may be shown with; any other may be a value.

    Raises:
        SinkError: the database refused; its own words, without statements or values.
    """
    try:
        with _opened(engine) as connection, _attaching(connection, attached), connection.begin():
            yield connection
    except (SQLAlchemyError, engine.dialect.loaded_dbapi.Error) as error:
        raise SinkError(f"the database {place(engine)} refused: {public_words(error, names)}") from error


def _opened(engine: Engine) -> Connection:
    """A connection; what a driver makes of an option that it does not understand may be any error."""
    try:
        return engine.connect()
    except (ValueError, TypeError, OverflowError):
        raise SinkError(_NOT_TAKEN) from None


@contextmanager
def _attaching(connection: Connection, files: Mapping[str, Path]) -> Iterator[None]:
    """SQLite does so outside of transactions only; hence past SQLAlchemy, which would begin one."""
    raw: Any = connection.connection.driver_connection
    for schema, path in files.items():
        raw.execute(f"ATTACH ? AS {schema}", (str(path),))
    try:
        yield
    finally:
        for schema in files:
            raw.execute(f"DETACH {schema}")


def lock_tables(connection: Connection) -> None:
    """Let nobody else create a table until the end of the transaction.

    PostgreSQL's CREATE TABLE IF NOT EXISTS fails when two do it at once; SQLite has one writer anyhow.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))


def lock_owners(connection: Connection, owner: Owner) -> None:
    """Let no other owner of the task do what follows until the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(int(owner.digest, 16))))


def end_older_sessions(engine: Engine, owner: Owner) -> None:
    """End what former owners of the task left open in PostgreSQL: a frozen one would hold its locks for ever.

    The server cannot tell on its own: a client that froze while it was sending looks like a busy one.
    Sessions of another database user stay; those are left to the server's time-outs.
    """
    if engine.dialect.name != "postgresql":
        return
    prefix = _session_name(owner).rpartition(" ")[0] + " "
    with transaction(engine) as connection:
        for pid, name in connection.execute(_SESSIONS, {"prefix": prefix}).all():
            token = name.removeprefix(prefix)  # whatever a session has chosen to call itself
            if token.isdecimal() and int(token) < owner.token:
                _terminate(connection, pid)


def _terminate(connection: Connection, pid: int) -> None:
    with suppress(DBAPIError), connection.begin_nested():
        connection.execute(sa.select(sa.func.pg_terminate_backend(pid, END_SESSION_TIMEOUT_MS)))


def _session_name(owner: Owner) -> str:
    return f"sparkherd {owner.digest} {owner.token}"


def _parse(url: str) -> URL:
    if fault := url_fault(url):
        raise SinkError(f"sink.options.url {fault}")
    parsed = sa.make_url(url)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        parsed = parsed.set(
            database=str(Path(str(parsed.database)).absolute())
        )  # executors have other folders
    return parsed.set(drivername=_DRIVERS[backend])


def _require_known_options(url: URL) -> None:
    """Which parameters there are only libpq knows, which a manager need not have."""
    if url.get_backend_name() == "sqlite":
        return
    from psycopg import Error, conninfo  # noqa: PLC0415 - only workers with PostgreSQL have it

    try:
        conninfo.make_conninfo(**{key: values[-1] for key, values in url.normalized_query.items()})
    except Error as error:
        raise SinkError(f"sink.options.url: {str(error).strip()}") from None


def _sqlite_arguments(url: URL) -> dict[str, Any]:
    """What the URL sets is not set here."""
    return {} if "timeout" in url.query else {"timeout": LOCK_TIMEOUT_S}


def _postgresql_arguments(url: URL, owner: Owner) -> dict[str, Any]:
    """What the URL sets comes after what is set here, and so counts."""
    arguments = {"options": _session_options(url), "application_name": _session_name(owner)}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = str(CONNECT_TIMEOUT_S)
    return arguments


def _postgresql_dialect(url: URL) -> Dialect:
    """With positional parameters, so that rows go to the driver as they are; SQLite has them anyhow.

    Values of `hstore` are text: to know them is to ask for a number that is another one when the extension is
    made again.
    """
    return sa.create_engine(url, paramstyle="format", use_native_hstore=False).dialect


_DIALECTS = SharedDialects(_postgresql_dialect)


def _session_options(url: URL) -> str:
    """PostgreSQL's, the URL's own last: of two of a name, the later one counts."""
    ours = {
        "idle_in_transaction_session_timeout": IDLE_TRANSACTION_TIMEOUT_MS,
        "lock_timeout": LOCK_TIMEOUT_S * 1000,
    }
    given = url.normalized_query.get("options", ())
    return " ".join([*(f"-c {name}={value}" for name, value in ours.items()), *given])


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """Readers and the writer apart (WAL); a commit is on disk before Spark is told of it (FULL)."""
    del record
    connection.isolation_level = None
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous=FULL")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Tasks that open a new file together want this lock together, and SQLite fails some of them at once."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_LOCK_S)
        else:
            return


def _begin_immediate(connection: Connection) -> None:
    """Take the write lock before the fence is read; what is read under a later one could be old by then."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
