"""Bringing a database to this version's schema, by numbered migrations (alembic)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from manager.storage.base import StorageError
from manager.storage.database import shown
from manager.storage.living_managers import url_of_a_living_one
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from manager.storage.database import Database

T = TypeVar("T")

VERSION_TABLE = "sparkherd_schema"
LOCK_KEY = 0x5_BA_4C
"""Of the advisory lock that whoever migrates holds (PostgreSQL); any number will do."""


class Schema(msgspec.Struct, frozen=True):
    """Which schema a database has, None for an empty one, and the newest one that this sparkherd knows."""

    present: str | None
    newest: str
    known: frozenset[str]

    @property
    def is_newer(self) -> bool:
        """Whether a newer sparkherd made it."""
        return self.present is not None and self.present not in self.known

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to do."""
        return self.present == self.newest


def schema_of(connection: Connection) -> Schema:
    """What `connection` leads to."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return schema_known(context.get_current_revision())


def schema_known(present: str | None) -> Schema:
    """A database that has `present`, or nothing, beside what this sparkherd knows."""
    scripts = ScriptDirectory.from_config(_config())
    return Schema(
        present=present,
        newest=scripts.get_current_head() or "",
        known=frozenset(script.revision for script in scripts.walk_revisions()),
    )


def take_turns(connection: Connection) -> None:
    """Wait until no other manager that starts is in the middle of this, to the end of the transaction.

    It is the first thing a transaction does. On SQLite this is what begins it: Python's driver begins none
    before a `CREATE` or `ALTER`, so each of those would be committed by itself.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})


def upgrade(connection: Connection) -> None:
    """Apply what is missing, inside the caller's transaction.

    A manager of before that is at work would go on, leave out what it does not know, and give a transferred
    task to a worker without the names that its checkpoint and its sink know it by.

    Raises:
        StartupError: the database was made by a newer sparkherd, or is to be changed under a manager.
    """
    take_turns(connection)
    schema = schema_of(connection)
    if schema.is_newer:
        raise StartupError(
            f"--database: its schema {schema.present} is newer than what this sparkherd knows, "
            f"{schema.newest}; run the newer one"
        )
    if schema.is_current:
        return
    if (url := url_of_a_living_one(connection)) is not None:
        raise StartupError(
            f"--database: its schema {schema.present} is to become {schema.newest}, and a manager at {url}"
            " uses it; stop all managers first"
        )
    command.upgrade(_config(connection), "head")


async def with_schema(database: Database, work: Callable[[Connection], T]) -> T:
    """Connect for the first time, and do `work` in one transaction, however long it takes.

    Raises:
        StartupError: the database cannot be used; it is closed.
    """
    try:
        return await database.transact(work, within_s=None)
    except StorageError as error:
        await database.close()
        raise StartupError(f"--database {shown(database)}: {error}") from error
    except StartupError:
        await database.close()
        raise


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", "manager:storage/migrations")
    config.attributes["connection"] = connection
    return config
