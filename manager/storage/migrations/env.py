"""Run by alembic; the connection is the caller's, and so is its transaction."""

from __future__ import annotations

from alembic import context

from manager.storage.migrate import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
