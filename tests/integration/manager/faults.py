"""What may befall a database while a manager works on it; each ends with its `with` block."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from tests.integration.manager.backends import Database
    from tests.integration.postgres import Server

TABLES = "groups, members, offsets, tasks, ownership, rebalances, sparkherd_schema"
DISK_FULL = """
CREATE OR REPLACE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$
"""


@contextmanager
def _sqlite_locked(path: Path) -> Iterator[None]:
    """Another connection holds the database for itself, longer than anybody waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def _sqlite_removed(path: Path) -> Iterator[None]:
    """The file is moved away while it is in use."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def _sqlite_full(path: Path) -> Iterator[None]:
    """The kernel lets no file grow any more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = path.with_name(f"{path.name}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _postgresql_locked(database: Database, _: Server) -> Iterator[None]:
    """Another connection holds every table for itself, longer than anybody waits."""
    with database.transaction() as other:
        other.exec_driver_sql(f"LOCK TABLE {TABLES} IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def _postgresql_full(database: Database, _: Server) -> Iterator[None]:
    """Nothing can be stored any more."""
    tables = TABLES.split(", ")
    trigger = "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON {} EXECUTE FUNCTION disk_full()"
    database.run(DISK_FULL, *(trigger.format(table) for table in tables))
    yield
    database.run(*(f"DROP TRIGGER full_disk ON {table}" for table in tables))


@contextmanager
def _postgresql_stopped(_: Database, server: Server) -> Iterator[None]:
    """The server is not there: every connection breaks, and none can be made."""
    server.stop()
    try:
        yield
    finally:
        server.start()


_SQLITE: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "locked": _sqlite_locked,
    "removed": _sqlite_removed,
    "full": _sqlite_full,
}
_POSTGRESQL: dict[str, Callable[[Database, Server], AbstractContextManager[None]]] = {
    "locked": _postgresql_locked,
    "full": _postgresql_full,
    "stopped": _postgresql_stopped,
}
FAULTS = [("sqlite", name) for name in _SQLITE] + [("postgresql", name) for name in _POSTGRESQL]


def fault(name: str, database: Database, request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    """One of `FAULTS`, from the beginning of its block to its end."""
    if database.backend == "sqlite":
        return _SQLITE[name](Path(sa.make_url(database.url).database or ""))
    return _POSTGRESQL[name](database, request.getfixturevalue("postgres"))
