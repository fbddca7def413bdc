"""Slots come and go: their groups are taken up from storage, and let go of again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from manager.clock import read_clocks
from manager.runtime.reloader import load_batches
from manager.runtime.replies import deliver

if TYPE_CHECKING:
    from collections.abc import Collection

    from manager.core.coordinator import GroupCoordinator
    from manager.metrics.meter import LeaseChange, Meter
    from manager.runtime.routing import GroupRouting
    from manager.runtime.writer import Writer
    from manager.storage.base import Storage

log = structlog.get_logger(__name__)


class SlotLoader:
    """Has the groups of this manager's slots in memory, and no others, as `manager.cluster` decides."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        storage: Storage,
        routing: GroupRouting,
        writer: Writer,
        meter: Meter,
    ) -> None:
        self._coordinator = coordinator
        self._storage = storage
        self._routing = routing
        self._writer = writer
        self._meter = meter

    async def load(self, slots: Collection[int]) -> None:
        """Take up the groups of these slots; each is served from then on.

        Raises:
            StorageError: they cannot be read, for now; some may have been taken up.
        """
        wanted, sizes = set(slots), await self._storage.group_sizes()
        self._meter.lease_changed("taken", len(slots))
        due = {name: size for name, size in sizes.items() if self._routing.slot_of(name) in wanted}
        missing = {name: size for name, size in due.items() if not self._routing.has_taken_up(name)}
        for some in load_batches(missing):
            await self._take_up(some)
            await asyncio.sleep(0)
        log.info("groups taken up", groups=len(missing))

    async def _take_up(self, groups: Collection[str]) -> None:
        stored = await self._storage.load(groups)
        self.check_lease()
        for name in stored:
            if self._routing.is_ours(name):
                self._writer.reloader.take_up(name, stored[name])
                self._routing.taken_up(name)

    def close(self, slots: Collection[int]) -> list[str]:
        """Let the groups of these slots go: who waits is sent elsewhere; returns them.

        What was decided so far is still stored, and answered; `settle` waits for that.
        """
        gone = set(slots)
        names = [name for name in self._coordinator.names() if self._routing.slot_of(name) in gone]
        for name in self._writer.reloader.unloadable.faults():
            if self._routing.slot_of(name) in gone:
                self._writer.reloader.unloadable.remove(name)
        for name in names:
            refusal = self._routing.refusal(name)
            deliver((parked, refusal) for parked in self._coordinator.evict(name))
            self._meter.forget(name)
        return names

    async def settle(self, groups: Collection[str]) -> None:
        """Wait until nothing of these groups is on its way to the storage."""
        await self._writer.settle(groups)

    def step_down(self, slots: Collection[int], how: LeaseChange = "lost") -> None:
        """These slots are another manager's: nothing of them is answered or stored any more."""
        self._meter.lease_changed(how, len(slots))
        gone = set(slots)
        self._writer.abandon(lambda group: self._routing.slot_of(group) in gone)
        self.close(slots)

    def check_lease(self) -> None:
        """Step down for everything if the lease has run out; comes before anything else that time brings."""
        if gone := self._routing.lapse(read_clocks().mono):
            log.warning("the lease ran out: stepping down", slots=len(gone))
            self.step_down(gone)

    def fenced(self, slots: Collection[int]) -> None:
        """A write has shown that these slots are another manager's."""
        if slots:
            self._routing.lost(slots)
            self.step_down(slots)
