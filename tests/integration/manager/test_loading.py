"""Very many groups, or rows, are taken up some at a time: the loop goes round, and some are served."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from manager.cluster.held_slots import HeldSlots, SlotState
from manager.cluster.slot_routing import SlotRouting
from manager.cluster.slots import slot_of
from manager.core.commands import DescribeGroup
from manager.core.coordinator import GroupCoordinator
from manager.core.stored_rows import GroupRow, OwnershipRow
from manager.runtime import reloader
from manager.runtime.coordinator_runtime import CoordinatorRuntime
from manager.runtime.reloader import GROUPS_AT_ONCE
from manager.settings import GroupSettings
from manager.storage import row_reader
from manager.storage.base import StorageError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.database import ANSWER_S
from manager.storage.sql_storage import SqlStorage
from protocol.errors import Failure
from tests.fakes.turns import eventually
from tests.integration.manager.managers import Manager

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable
    from pathlib import Path

    from manager.core.stored_rows import Row
    from manager.core.turn import ClockReading, Turn
    from tests.integration.manager.backends import Database

SLOTS = 4
GROUPS = [f"g{n:03}" for n in range(4 * GROUPS_AT_ONCE)]


class Gated(SqlStorage):
    """Lets so many reads of groups pass, and holds the next one up, or lets it fail."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.passes = 1_000_000
        self.gate = asyncio.Event()
        self.is_broken = False

    async def load(self, groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        if not self.passes:
            await self.gate.wait()
            if self.is_broken:
                raise StorageError("away")
        self.passes = max(self.passes - 1, 0)
        return await super().load(groups)


@pytest.fixture
async def storage(tmp_path: Path) -> Gated:
    made = Gated(f"sqlite+aiosqlite:///{tmp_path}/m.db")
    await made.open()
    await made.leases.prepare(SLOTS)
    await made.commit([GroupRow(group=name, generation=1) for name in GROUPS])
    return made


class Loading:
    """A manager that has all slots, and has yet to read their groups."""

    def __init__(self, storage: Gated) -> None:
        self._table = storage.leases
        self.leases = HeldSlots(ManagerIdentity("a", "a-1", "http://a"), SLOTS, None)
        self.routing = SlotRouting(self.leases, storage, storage.leases)
        self.runtime = CoordinatorRuntime(GroupSettings(initial_rebalance_delay_ms=0), storage, self.routing)

    async def take(self, *slots: int) -> None:
        """It alone has the database."""
        epochs = await self._table.seize(self.leases.me)
        self.leases.took({slot: epochs[slot] for slot in slots}, self.leases.term)

    async def found(self, group: str) -> str:
        """What becomes of a request."""
        outcome: Any = await self.runtime.ask(group, DescribeGroup())
        return outcome.code.name if isinstance(outcome, Failure) else str(outcome.error)


@pytest.fixture
async def loading(storage: Gated) -> AsyncIterator[Loading]:
    made = Loading(storage)
    made.runtime.begin()
    yield made
    storage.gate.set()
    await made.runtime.stop()


async def test_the_groups_of_a_slot_are_loaded(loading: Loading) -> None:
    """Those and no others."""
    await loading.take(1, 3)
    await loading.runtime.slots.load([1, 3])
    assert [line.group for line in loading.runtime.groups()] == [
        name for name in GROUPS if slot_of(name, SLOTS) in {1, 3}
    ]


class Turns:
    """What is counted, by turns of the loop; what another thread does holds the loop up in none of them."""

    def __init__(self) -> None:
        self.counts: list[int] = [0]
        self._thread = threading.current_thread()
        self._next()

    def count(self, many: int = 1) -> None:
        """So much more in this turn."""
        if threading.current_thread() is self._thread:
            self.counts[-1] += many

    def _next(self) -> None:
        self.counts.append(0)
        asyncio.get_running_loop().call_soon(self._next)


def restored(monkeypatch: pytest.MonkeyPatch, count: Callable[[Turns, list[Row]], None]) -> Turns:
    """Counts what becomes of rows that are taken up."""
    turns, restore = Turns(), GroupCoordinator.load

    def counted(self: GroupCoordinator, name: str, rows: Iterable[Row], instant: ClockReading) -> Turn:
        count(turns, list(rows))
        return restore(self, name, rows, instant)

    monkeypatch.setattr(GroupCoordinator, "load", counted)
    return turns


async def test_the_loop_goes_round_between_a_few_groups_and_the_next(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: heartbeats, leases and whoever else waits for the loop get their turn."""
    turns = restored(monkeypatch, lambda turns, _: turns.count())
    await loading.take(*range(SLOTS))
    await loading.runtime.slots.load(range(SLOTS))
    assert sum(turns.counts) == len(GROUPS)
    assert max(turns.counts) <= GROUPS_AT_ONCE


def owned(tasks: int, *groups: str) -> list[OwnershipRow]:
    """So many rows of each group, besides the one it has."""
    return [OwnershipRow(group=group, task=f"t{n:04}") for group in groups for n in range(tasks)]


async def test_the_loop_goes_round_between_some_rows_and_the_next(
    loading: Loading, storage: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty groups may have two thousand tasks each; only what belongs to one group comes at once."""
    monkeypatch.setattr(reloader, "ROWS_AT_ONCE", 20)
    await storage.commit(owned(8, *GROUPS[:10]) + owned(50, GROUPS[10]))
    turns = restored(monkeypatch, lambda turns, rows: turns.count(len(rows)))
    await loading.take(*range(SLOTS))
    await loading.runtime.slots.load(range(SLOTS))
    assert sum(turns.counts) == len(GROUPS) + 10 * 8 + 50
    assert sorted(turns.counts)[-2:] == [20, 51]


async def test_reading_makes_only_some_rows_in_one_turn_of_the_loop(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group may have more of them than can be made within a lease."""
    storage, turns, made = SqlStorage(database.url), Turns(), row_reader._made
    await storage.open()
    await storage.commit(owned(3 * row_reader.ROWS_AT_ONCE, "g"))

    def counted(*args: Any) -> Row:
        turns.count()
        return made(*args)

    monkeypatch.setattr(row_reader, "_made", counted)
    rows = (await storage.load(["g"]))["g"]
    await storage.close()
    assert len(rows) == 3 * row_reader.ROWS_AT_ONCE
    assert max(turns.counts) <= row_reader.ROWS_AT_ONCE


async def test_reading_may_take_long_if_only_the_database_goes_on_answering(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that takes longer than a server may be silent would never be served."""
    storage, made, loop = SqlStorage(database.url), row_reader._made, asyncio.get_running_loop()
    await storage.open()
    await storage.commit(owned(3 * row_reader.ROWS_AT_ONCE, "g"))
    begun, rows = loop.time(), 0

    def slowly(*args: Any) -> Row:
        nonlocal rows
        rows += 1
        return made(*args)

    monkeypatch.setattr(row_reader, "_made", slowly)
    monkeypatch.setattr(loop, "time", lambda: begun + rows / row_reader.ROWS_AT_ONCE * 0.9 * ANSWER_S)
    assert len((await storage.load(["g"]))["g"]) == 3 * row_reader.ROWS_AT_ONCE
    monkeypatch.undo()
    await storage.close()


async def test_lost_groups_come_back_a_few_at_a_time(
    loading: Loading, storage: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After trouble with the database there may be as many, and one of them may be as large."""
    monkeypatch.setattr(reloader, "ROWS_AT_ONCE", 20)
    await storage.commit(owned(50, GROUPS[10]))
    await loading.take(*range(SLOTS))
    await loading.runtime.slots.load(range(SLOTS))
    loading.routing.loaded(range(SLOTS))
    asked, load = [], storage.load

    async def noted(groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        asked.append(list(groups or ()))
        return await load(groups)

    storage.load = noted  # type: ignore[method-assign]  # it is watched
    for name in GROUPS:
        loading.runtime._writer.lose(name)
    await eventually(lambda: len(loading.runtime.groups()) == len(GROUPS))
    assert max(map(len, asked)) <= GROUPS_AT_ONCE
    assert [GROUPS[10]] in asked
    assert await loading.found(GROUPS[-1]) == "NONE"


async def test_a_group_is_served_as_soon_as_it_is_in_memory(loading: Loading, storage: Gated) -> None:
    """Its sessions run from then on, so its members must be heard; the others are asked to come again."""
    storage.passes = 1
    await loading.take(*range(SLOTS))
    reading = asyncio.create_task(loading.runtime.slots.load(range(SLOTS)))
    await eventually(lambda: len(loading.runtime.groups()) == GROUPS_AT_ONCE)
    assert await loading.found(GROUPS[0]) == "NONE"
    assert await loading.found(GROUPS[-1]) == "COORDINATOR_LOAD_IN_PROGRESS"
    storage.gate.set()
    await reading
    assert await loading.found(GROUPS[-1]) == "NONE"


async def test_what_is_served_is_not_taken_up_again_when_the_rest_is_read_anew(
    loading: Loading, storage: Gated
) -> None:
    """It has gone on since: whoever waits there for an answer gets it."""
    storage.passes, storage.is_broken = 1, True
    storage.gate.set()
    await loading.take(*range(SLOTS))
    with pytest.raises(StorageError):
        await loading.runtime.slots.load(range(SLOTS))
    known = loading.runtime._coordinator.group(GROUPS[0])
    storage.is_broken = False
    await loading.runtime.slots.load(range(SLOTS))
    assert len(loading.runtime.groups()) == len(GROUPS)
    assert loading.runtime._coordinator.group(GROUPS[0]) is known


async def test_a_slot_that_is_lost_while_it_is_read_is_not_served(loading: Loading, storage: Gated) -> None:
    """Nor is what of it was in memory."""
    storage.passes = 1
    await loading.take(*range(SLOTS))
    reading = asyncio.create_task(loading.runtime.slots.load(range(SLOTS)))
    await eventually(lambda: len(loading.runtime.groups()) == GROUPS_AT_ONCE)
    loading.routing.lost([0])
    loading.runtime.slots.step_down([0])
    storage.gate.set()
    await reading
    loading.routing.loaded(range(SLOTS))
    held = {slot_of(line.group, SLOTS) for line in loading.runtime.groups()}
    assert held == {1, 2, 3}
    assert loading.leases.in_state(SlotState.SERVING) == (1, 2, 3)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_the_lease_is_renewed_while_the_first_groups_are_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read them may take longer than a lease: it is not over before the manager has begun."""
    manager = Manager(database, "a")
    renewals, gate, names = 0, asyncio.Event(), manager.storage.group_sizes
    renew = manager.storage.leases.renew

    async def counted(*args: Any) -> Any:
        nonlocal renewals
        renewals += 1
        if renewals > 1:
            gate.set()
        return await renew(*args)

    async def slowly() -> dict[str, int]:
        manager.node.routing.on_stranger()  # somebody wakes the controller, as time would
        await gate.wait()
        return await names()

    monkeypatch.setattr(manager.storage.leases, "renew", counted)
    monkeypatch.setattr(manager.storage, "group_sizes", slowly)
    await manager.start()
    await manager.stop()
    assert renewals > 1
