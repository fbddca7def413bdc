"""The groups of the slots that are ours: who is let in, who is sent elsewhere, what a write carries."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from manager.clock import read_clocks
from manager.cluster.held_slots import SlotState
from manager.storage.base import StaleEpochError
from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from manager.cluster.held_slots import HeldSlots
    from manager.core.turn import Outcome
    from manager.storage.base import Storage
    from manager.storage.lease_table import LeaseTable
    from protocol.messages.base import Request
    from protocol.messages.groups import Coordinator

LOADING_WAIT_MS = 1000
"""How long a heartbeat that may be held is held while its group is loaded."""

NOBODY = Failure(
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "no manager has the group at the moment, as far as is known; try again",
)
LOADING = Failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the group is being loaded; try again")


class SlotRouting:
    """`GroupRouting` by leases. `on_stranger` is called when somebody asks here for what is not ours."""

    def __init__(self, held_slots: HeldSlots, storage: Storage, table: LeaseTable) -> None:
        self.on_stranger: Callable[[], None] = lambda: None
        self._held_slots = held_slots
        self._storage = storage
        self._table = table
        self._loaded = asyncio.Event()

    def slot_of(self, group: str) -> int:
        """Its hash."""
        return self._held_slots.slot_of(group)

    def admits(self, group: str, now: int) -> bool:
        """Ours and in memory, and the lease has not run out while nobody looked."""
        return now < self._held_slots.lapses_at and self._held_slots.serves(group)

    def is_mine(self, webhook: str) -> bool:
        """A webhook is told by the manager that would have a group of that name: one, as a rule."""
        return self.admits(webhook, read_clocks().mono)

    def refusal(self, group: str) -> Failure:
        """NOT_COORDINATOR with the one who is, or that nobody is known to be."""
        coordinator = self.coordinator(group)
        if coordinator is None or coordinator.id == self._held_slots.me.id:
            return NOBODY
        return Failure(
            ErrorCode.NOT_COORDINATOR,
            f"manager {coordinator.id} has group {group}",
            {"coordinator": coordinator},
        )

    async def turn_away(self, group: str, request: Request) -> Outcome:
        """A member whose group is on its way into memory may go on as it is; everybody else tries again."""
        if self._held_slots.state(self.slot_of(group)) is not SlotState.LOADING:
            self.on_stranger()
            return self.refusal(group)
        if not isinstance(request, HeartbeatRequest):
            return LOADING
        with suppress(TimeoutError):
            async with asyncio.timeout(min(request.wait_ms, LOADING_WAIT_MS) / 1000):
                await self._loaded.wait()
        return HeartbeatResponse(tasks_revision=request.tasks_revision or 0)

    def coordinator(self, group: str) -> Coordinator | None:
        """The manager that has `group`, as far as is known."""
        return self._held_slots.coordinator(self.slot_of(group), read_clocks().mono)

    def taken_up(self, group: str) -> None:
        """`group` is in memory, and is served: its sessions run. Others of its slot may still be read."""
        self._held_slots.taken_up(group)

    def has_taken_up(self, group: str) -> bool:
        """Whether it is served."""
        return self._held_slots.serves(group)

    def loaded(self, slots: Collection[int]) -> None:
        """The groups of these slots are in memory; held heartbeats may go."""
        self._held_slots.loaded(slots)
        self._loaded.set()
        self._loaded = asyncio.Event()

    def lapse(self, now: int) -> Collection[int]:
        """All, once the time has come."""
        return self._held_slots.lapse() if now >= self._held_slots.lapses_at else ()

    def lost(self, slots: Collection[int]) -> None:
        """Step down for them."""
        self._held_slots.drop(slots)

    def epochs(self, groups: Iterable[str]) -> Mapping[int, int]:
        """One a slot."""
        epochs, foreign = self._held_slots.epochs(groups)
        if foreign:
            raise StaleEpochError(foreign)
        return epochs

    def is_ours(self, group: str) -> bool:
        """Whether its slot is."""
        return self._held_slots.state(self.slot_of(group)) is not None

    def serves(self, group: str) -> bool:
        """Whether its slot is ours, and loaded."""
        return self._held_slots.serves(group)

    async def renew(self, groups: Collection[str]) -> Collection[int]:
        """Raise the slots' epochs: that waits for what is under way, and fences what is still to come."""
        await self._storage.probe()
        slots = {self.slot_of(group) for group in groups}
        return self._held_slots.retook(slots, await self._table.keep(self._held_slots.me, slots))
