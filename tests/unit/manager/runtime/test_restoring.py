"""Lost groups come back from storage as it is now, or not at all."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from manager.core.stored_rows import GroupRow, TaskRow, Unreadable, UnreadableError
from manager.runtime import unloadable_groups
from manager.runtime.writer import Writer
from manager.storage.base import StorageError
from tests.fakes.turns import eventually, settle, until
from tests.unit.manager.runtime.slots import OneSlot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from manager.core.stored_rows import Row
    from manager.core.turn import Turn
    from manager.storage.base import Storage


class Shelf:
    """A storage with one group, whose answers wait for `may_answer`; `commit` fails unless it `works`."""

    def __init__(self) -> None:
        self.generation = 1
        self.reads = self.probes = self.commits = 0
        self.works = False
        self.is_mended = True
        self.may_answer = asyncio.Event()

    async def group_sizes(self, groups: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(groups, 1)

    async def still_unreadable(self, rows: Collection[Unreadable]) -> frozenset[str]:
        return frozenset() if self.is_mended else frozenset(row.group for row in rows)

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        rows: list[Row] = [GroupRow(group="g", generation=self.generation)]
        self.reads += 1
        await self.may_answer.wait()
        return {"g": rows} if groups else {}

    async def commit(self, *_: object) -> None:
        self.commits += 1
        if not self.works:
            raise StorageError("disk full")

    async def probe(self) -> None:
        self.probes += 1


class Setting:
    """A writer that runs, and what it brings back."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.slot = OneSlot(self.shelf)
        self.brought_back: list[int] = []
        self.writer = Writer(
            cast("Storage", self.shelf),
            self.slot.routing,
            cast("Any", SimpleNamespace(commit=lambda _: nullcontext())),
            on_lost=lambda _: None,
            on_loaded=lambda _, rows: self.brought_back.extend(cast("Any", row).generation for row in rows),
            on_durable=lambda _: None,
            on_fenced=lambda _: None,
            on_broken=lambda: None,
        )


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    made = Setting()
    made.writer.start()
    yield made
    made.shelf.may_answer.set()
    await made.writer.stop()


async def test_what_was_read_before_the_slot_was_lost_and_taken_again_is_read_anew(setting: Setting) -> None:
    """Whoever took it has read it too, and gone on: the older state would give out a generation twice."""
    setting.writer.lose("g")
    await until(lambda: setting.shelf.reads == 1)
    setting.slot.lose_and_take_again(2)
    setting.shelf.generation = 7
    setting.shelf.may_answer.set()
    await until(lambda: setting.brought_back)
    assert setting.brought_back == [7]


TORN = UnreadableError(
    Unreadable(group="g", place="table tasks, group g, task t", why="?", kind=TaskRow, stored_key=("g", "t"))
)


def changed(group: str) -> Turn:
    """A turn with something to write."""
    made = SimpleNamespace(group=SimpleNamespace(name=group), changes=[GroupRow(group=group)], answers=[])
    return cast("Turn", made)


async def test_others_rows_are_written_while_a_refused_group_is_read_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have so many rows that reading them takes seconds, and nobody has to wait for that."""
    monkeypatch.setattr(unloadable_groups, "AGAIN_S", 0.0)
    setting.shelf.works = True
    setting.writer.reloader.unloadable.add("g", TORN)
    await until(lambda: setting.shelf.reads)
    setting.writer.take(changed("other"))
    await eventually(lambda: setting.shelf.commits)
    assert setting.brought_back == []
    setting.shelf.may_answer.set()
    await until(lambda: setting.brought_back == [1])
    assert setting.writer.refusal("g") is None


async def test_a_group_whose_row_is_as_it_was_is_not_read_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows it has, one is looked at; all are read once that one is not in the way any more."""
    monkeypatch.setattr(unloadable_groups, "AGAIN_S", 0.0)
    setting.shelf.is_mended = False
    looks, look = [], setting.shelf.still_unreadable

    async def noted(rows: Collection[Unreadable]) -> frozenset[str]:
        looks.append([row.stored_key for row in rows])
        return await look(rows)

    monkeypatch.setattr(setting.shelf, "still_unreadable", noted)
    setting.writer.reloader.unloadable.add("g", TORN)
    await eventually(lambda: len(looks) > 3)
    assert (looks[0], setting.shelf.reads) == ([("g", "t")], 0)
    setting.shelf.is_mended = True
    await eventually(lambda: setting.shelf.reads)


async def test_what_was_read_of_a_refused_group_before_its_slot_was_lost_is_read_anew(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with lost groups: somebody else may have mended and changed it."""
    monkeypatch.setattr(unloadable_groups, "AGAIN_S", 0.0)
    setting.writer.reloader.unloadable.add("g", TORN)
    await until(lambda: setting.shelf.reads)
    setting.slot.lose_and_take_again(2)
    setting.shelf.generation = 7
    setting.shelf.may_answer.set()
    await eventually(lambda: setting.brought_back)
    assert setting.brought_back == [7]


async def test_a_group_whose_slot_is_being_taken_over_is_left_to_who_reads_it(setting: Setting) -> None:
    """It would be in memory twice, from two moments."""
    setting.slot.take(2)
    setting.writer.lose("g")
    await settle()
    assert setting.shelf.reads == 0
    assert setting.writer.refusal("g") is None


async def test_the_storage_is_found_well_though_no_group_waits_for_it(setting: Setting) -> None:
    """The groups of the transaction that failed are others' by now."""
    setting.slot.take(2)
    setting.shelf.may_answer.set()
    setting.writer.take(changed("g"))
    await until(lambda: setting.shelf.probes)
    await until(lambda: setting.writer.is_healthy)
