"""Bringing a database to this version's schema, by numbered migrations (alembic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from protocol.errors import StartupError

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION_TABLE = "sparkherd_schema"


def upgrade(connection: Connection) -> None:
    """Apply what is missing, inside the caller's transaction.

    Raises:
        StartupError: the database was made by a newer sparkherd.
    """
    config = _config(connection)
    newest = ScriptDirectory.from_config(config)
    present = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()
    if present is not None and present not in {script.revision for script in newest.walk_revisions()}:
        raise StartupError(
            f"--database: its schema {present} is newer than what this sparkherd knows, "
            f"{newest.get_current_head()}"
        )
    if present != newest.get_current_head():
        command.upgrade(config, "head")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", "manager:storage/migrations")
    config.attributes["connection"] = connection
    return config
