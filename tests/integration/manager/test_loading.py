"""Very many groups are taken up some at a time: the loop goes round between, and some are served already."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from manager.cluster.leases import Leases, SlotState
from manager.cluster.slots import slot_of
from manager.cluster.tenancy import SlotTenancy
from manager.cluster.view import Identity
from manager.core.commands import DescribeGroup
from manager.core.coordinator import Coordinator
from manager.core.rows import GroupRow
from manager.runtime.runtime import Runtime
from manager.runtime.writer import AT_ONCE
from manager.settings import GroupSettings
from manager.storage.base import StorageError
from manager.storage.sql import SqlStorage
from protocol.errors import Failure
from tests.fakes.turns import eventually
from tests.integration.manager.managers import Manager

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable
    from pathlib import Path

    from manager.core.rows import Row
    from manager.core.turn import Instant, Turn
    from tests.integration.manager.backends import Database

SLOTS = 4
GROUPS = [f"g{n:03}" for n in range(4 * AT_ONCE)]


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
        self.leases = Leases(Identity("a", "a-1", "http://a"), SLOTS, None)
        self.tenancy = SlotTenancy(self.leases, storage, storage.leases)
        self.runtime = Runtime(GroupSettings(initial_rebalance_delay_ms=0), storage, self.tenancy)

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
    await loading.runtime.load([1, 3])
    assert [line.group for line in loading.runtime.groups()] == [
        name for name in GROUPS if slot_of(name, SLOTS) in {1, 3}
    ]


async def test_the_loop_goes_round_between_a_few_groups_and_the_next(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: heartbeats, leases and whoever else waits for the loop get their turn."""
    restored: list[int] = [0]
    restore = Coordinator.restore

    def counted(self: Coordinator, name: str, rows: Iterable[Row], instant: Instant) -> Turn:
        restored[-1] += 1
        return restore(self, name, rows, instant)

    def next_turn() -> None:
        restored.append(0)
        asyncio.get_running_loop().call_soon(next_turn)

    monkeypatch.setattr(Coordinator, "restore", counted)
    await loading.take(*range(SLOTS))
    next_turn()
    await loading.runtime.load(range(SLOTS))
    assert sum(restored) == len(GROUPS)
    assert max(restored) <= AT_ONCE


async def test_lost_groups_come_back_a_few_at_a_time(loading: Loading, storage: Gated) -> None:
    """After trouble with the database there may be as many."""
    await loading.take(*range(SLOTS))
    await loading.runtime.load(range(SLOTS))
    loading.tenancy.loaded(range(SLOTS))
    asked, load = [], storage.load

    async def noted(groups: Collection[str] | None = None) -> dict[str, list[Row]]:
        asked.append(len(groups or ()))
        return await load(groups)

    storage.load = noted  # type: ignore[method-assign]  # it is watched
    for name in GROUPS:
        loading.runtime._writer.lose(name)
    await eventually(lambda: len(loading.runtime.groups()) == len(GROUPS))
    assert max(asked) <= AT_ONCE
    assert await loading.found(GROUPS[-1]) == "NONE"


async def test_a_group_is_served_as_soon_as_it_is_in_memory(loading: Loading, storage: Gated) -> None:
    """Its sessions run from then on, so its members must be heard; the others are asked to come again."""
    storage.passes = 1
    await loading.take(*range(SLOTS))
    reading = asyncio.create_task(loading.runtime.load(range(SLOTS)))
    await eventually(lambda: len(loading.runtime.groups()) == AT_ONCE)
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
        await loading.runtime.load(range(SLOTS))
    known = loading.runtime._coordinator.group(GROUPS[0])
    storage.is_broken = False
    await loading.runtime.load(range(SLOTS))
    assert len(loading.runtime.groups()) == len(GROUPS)
    assert loading.runtime._coordinator.group(GROUPS[0]) is known


async def test_a_slot_that_is_lost_while_it_is_read_is_not_served(loading: Loading, storage: Gated) -> None:
    """Nor is what of it was in memory."""
    storage.passes = 1
    await loading.take(*range(SLOTS))
    reading = asyncio.create_task(loading.runtime.load(range(SLOTS)))
    await eventually(lambda: len(loading.runtime.groups()) == AT_ONCE)
    loading.tenancy.lost([0])
    loading.runtime.step_down([0])
    storage.gate.set()
    await reading
    loading.tenancy.loaded(range(SLOTS))
    held = {slot_of(line.group, SLOTS) for line in loading.runtime.groups()}
    assert held == {1, 2, 3}
    assert loading.leases.in_state(SlotState.SERVING) == (1, 2, 3)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_the_lease_is_renewed_while_the_first_groups_are_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read them may take longer than a lease: it is not over before the manager has begun."""
    manager = Manager(database, "a")
    renewals, gate, names = 0, asyncio.Event(), manager.storage.group_names
    renew = manager.storage.leases.renew

    async def counted(*args: Any) -> Any:
        nonlocal renewals
        renewals += 1
        if renewals > 1:
            gate.set()
        return await renew(*args)

    async def slowly() -> list[str]:
        manager.place.tenancy.on_stranger()  # somebody wakes the steward, as time would
        await gate.wait()
        return await names()

    monkeypatch.setattr(manager.storage.leases, "renew", counted)
    monkeypatch.setattr(manager.storage, "group_names", slowly)
    await manager.start()
    await manager.stop()
    assert renewals > 1
