"""Upgrades that do not come to their end, and those that must not begin."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest
from alembic import command
from sqlalchemy import inspect

from manager.core.stored_rows import GroupRow
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.migrate import VERSION_TABLE, _config, schema_of
from manager.storage.sql_storage import SqlStorage
from protocol.errors import StartupError
from tests.integration.manager.backends import opened

if TYPE_CHECKING:
    from tests.integration.manager.backends import Database

HOUR_MS = 3_600_000
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


def lease(database: Database, ends_in_ms: int) -> None:
    """A manager of an earlier version has a lease that ends then, by the clock of this machine."""
    columns = "(manager_id, incarnation, url, started_at_ms, expires_at_ms)"
    ends_at = int(time.time() * 1000) + ends_in_ms
    database.run(f"INSERT INTO managers {columns} VALUES ('m', 'm-1', 'http://m', 0, {ends_at})")


async def test_no_schema_is_changed_under_a_manager_of_before(database: Database) -> None:
    """It would go on writing without what is new; when its lease has run out, the upgrade is done."""
    with database.transaction() as connection:
        command.upgrade(_config(connection), "0012")
    lease(database, HOUR_MS)
    with pytest.raises(StartupError, match="a manager at http://m uses it; stop all managers first"):
        await SqlStorage(database.url).open()
    assert database.value(f"SELECT version_num FROM {VERSION_TABLE}") == "0012"
    database.run("DELETE FROM managers")
    lease(database, -HOUR_MS)
    async with opened(database.url):
        assert database.value(f"SELECT version_num FROM {VERSION_TABLE}") > "0012"


async def test_a_manager_starts_beside_others_of_its_version(database: Database) -> None:
    """There is nothing to change, so nobody has to be stopped."""
    async with opened(database.url):
        lease(database, HOUR_MS)
    async with opened(database.url) as storage:
        assert await storage.load() == {}


async def test_a_manager_that_was_cut_off_does_not_come_back_to_a_newer_schema(database: Database) -> None:
    """It was not there when the schema was changed, and nobody waited for it."""
    me = ManagerIdentity("m", "m-1", "http://m")
    async with opened(database.url) as storage:
        await storage.leases.register(me, HOUR_MS, is_starting=True)
        database.run("DELETE FROM managers", f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
        with pytest.raises(StartupError, match="--database: a newer sparkherd has made its schema 9999"):
            await storage.leases.register(me, HOUR_MS, is_starting=False)
        assert database.value("SELECT count(*) FROM managers") == 0
