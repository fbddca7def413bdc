from __future__ import annotations

import asyncio

import pytest

from manager.runtime import unloadable_groups
from manager.runtime.unloadable_groups import UnloadableGroups
from manager.storage.base import StorageError
from tests.fakes.turns import eventually, settle


class Rows:
    """What the rows of refused groups are read from; a reading takes until it may end."""

    def __init__(self) -> None:
        self.begun = 0
        self.given_up = 0
        self.may_end = asyncio.Event()
        self.trouble: Exception | None = None

    async def read(self) -> None:
        """One reading."""
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.trouble is not None:
            raise self.trouble


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is time at once."""
    monkeypatch.setattr(unloadable_groups, "AGAIN_S", 0)


async def begun() -> tuple[Rows, UnloadableGroups]:
    """A group is refused, and its reading is under way."""
    rows = Rows()
    groups = UnloadableGroups(rows.read)
    groups.add("bad", ValueError("no row"))
    await eventually(lambda: rows.begun)
    return rows, groups


async def test_there_is_one_reading_at_a_time() -> None:
    """A group that is refused meanwhile waits for the next one."""
    rows, groups = await begun()
    groups.add("worse", ValueError("no row"))
    groups.try_later()
    await settle()
    assert rows.begun == 1
    rows.may_end.set()
    await eventually(lambda: rows.begun > 2)
    groups.close()


async def test_a_database_that_is_not_there_is_asked_again() -> None:
    """Reading goes on until nothing is refused any more."""
    rows, groups = await begun()
    rows.trouble = StorageError("away")
    rows.may_end.set()
    await eventually(lambda: rows.begun > 2)
    groups.remove("bad")
    await settle()
    ended = rows.begun
    await settle()
    assert (rows.begun, groups.faults()) == (ended, {})


async def test_closing_gives_the_reading_up() -> None:
    """A manager that stops does not wait for its database."""
    rows, groups = await begun()
    groups.close()
    await eventually(lambda: rows.given_up)
    await settle()
    assert rows.begun == 1


async def test_nothing_is_read_once_it_is_closed() -> None:
    """Neither what was to be read nor what is refused while the manager stops."""
    rows = Rows()
    groups = UnloadableGroups(rows.read)
    groups.add("bad", ValueError("no row"))
    groups.close()
    groups.add("worse", ValueError("no row"))
    await settle()
    assert rows.begun == 0
