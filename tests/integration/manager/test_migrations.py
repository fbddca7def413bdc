"""Upgrades that do not come to their end."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from alembic import command
from sqlalchemy import inspect

from manager.core.stored_rows import GroupRow
from manager.storage.migrate import _config, schema_of
from manager.storage.sql_storage import SqlStorage

if TYPE_CHECKING:
    from tests.integration.manager.backends import Database

KILLED_AT = """
import asyncio, os, signal, sys
from sqlalchemy import Engine, event
from manager.storage.sql_storage import SqlStorage

url, fatal = sys.argv[1:]

@event.listens_for(Engine, "before_cursor_execute")
def executing(connection, cursor, statement, *rest):
    if fatal in statement:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(SqlStorage(url).open())
"""


async def killed_at(fatal: str, url: str) -> None:
    """A manager that opens the database is killed when it is about to execute such a statement."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED_AT, url, fatal)
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.processes
@pytest.mark.parametrize("fatal", ["TABLE ownership", "COLUMN lost_by", "INSERT INTO audit_numbers"])
async def test_an_upgrade_that_is_killed_is_made_good_by_the_next_start(
    database: Database, fatal: str
) -> None:
    """Between two tables, two columns, before the last row: nothing of it stands in the way."""
    await killed_at(fatal, database.url)
    storage = SqlStorage(database.url)
    await storage.open()
    await storage.commit([GroupRow(group="g", generation=1)])
    assert sorted(await storage.load()) == ["g"]
    await storage.close()


@pytest.mark.processes
async def test_an_upgrade_that_is_killed_changes_nothing_of_an_older_schema(database: Database) -> None:
    """Not even the migrations that were through: a database is at one version or at another."""
    with database.transaction() as connection:
        command.upgrade(_config(connection), "0003")
        before = inspect(connection).get_table_names()
    await killed_at("CREATE TABLE slots", database.url)
    with database.transaction() as connection:
        assert (inspect(connection).get_table_names(), schema_of(connection).present) == (before, "0003")
