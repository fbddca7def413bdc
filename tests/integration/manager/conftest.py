"""A fresh database of each kind, what tests do with it, and the event loops."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import aiohttp
import pytest
import uvloop

from tests.integration.manager.backends import BACKENDS, Database, opened
from tests.integration.manager.managers import started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from manager.storage.sql_storage import SqlStorage
    from tests.integration.manager.managers import Manager
    from tests.integration.postgres import Server


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    driver = BACKENDS[request.param]
    if request.param == "sqlite":
        yield Database(f"{driver}:///{tmp_path}/m.db")
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_database(driver)
    yield Database(url)
    server.drop(url)


@pytest.fixture
async def storage(database: Database) -> AsyncIterator[SqlStorage]:
    async with opened(database.url) as storage:
        yield storage


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as opened:
        yield opened


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
async def a(database: Database, stack: AsyncExitStack) -> Manager:
    """One of several managers, on PostgreSQL; it looks when the test says so."""
    return await started(database, stack, "a")


@pytest.fixture
async def b(database: Database, a: Manager, stack: AsyncExitStack) -> Manager:
    """Comes second: A gives it half of the slots."""
    second = await started(database, stack, "b")
    await a.look()
    await second.look()
    return second


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Python's own loop; with `tests.integration.manager.clients.BOTH_LOOPS` the manager's as well."""
    plain = {"asyncio": asyncio.new_event_loop}
    marker = item.get_closest_marker("asyncio")
    both = marker is not None and "loop_factories" in marker.kwargs
    return {**plain, "uvloop": uvloop.new_event_loop} if both else plain
