"""What anybody may ask any manager: who has which group, which managers and which groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from manager.cluster.held_slots import SlotState
from protocol.messages.cluster import ManagerListResponse, ManagerSummary, SlotSummary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from manager.cluster.held_slots import HeldSlots
    from manager.cluster.slot_routing import SlotRouting
    from manager.core.views.group_status import GroupStatus
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from manager.storage.cluster_state import ClusterState
    from manager.storage.sql_storage import SqlStorage
    from manager.storage.transfer_table import TransferTable
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.groups import Coordinator, GroupSummary


class _OfAGroup(Protocol):
    @property
    def group(self) -> str: ...


T = TypeVar("T", bound=_OfAGroup)


class Directory:
    """Of this manager's groups it tells what is in memory, of others' what is in the database.

    What is asked of the database raises `StorageError` when that is away.
    """

    def __init__(
        self, held_slots: HeldSlots, routing: SlotRouting, storage: SqlStorage, runtime: CoordinatorRuntime
    ) -> None:
        self._held_slots = held_slots
        self._routing = routing
        self._storage = storage
        self._runtime = runtime

    @property
    def transfers(self) -> TransferTable:
        """What all groups have stored of transfers."""
        return self._storage.transfers

    def is_here(self, group: str) -> bool:
        """Whether requests of `group` are answered by this process: it is ours, or nobody else's."""
        coordinator = self._routing.coordinator(group)
        return coordinator is None or coordinator.id == self._held_slots.me.id

    def coordinator(self, group: str) -> Coordinator | None:
        """The manager that has `group`, as the database showed at the last look; None if none is known to."""
        return self._routing.coordinator(group)

    async def managers(self) -> ManagerListResponse:
        """All managers and slots, as the database shows them now."""
        return _summary(await self._storage.leases.view())

    async def groups(self) -> list[GroupSummary]:
        """A line for each group of the cluster, by name."""
        return await self._everywhere(self._runtime.groups(), self._storage.summaries)

    async def group_statuses(self) -> list[GroupStatus]:
        """The figures of each group of the cluster, by name."""
        return await self._everywhere(self._runtime.group_statuses(), self._storage.group_statuses)

    async def announced_assignors(self) -> list[GroupAssignors]:
        """What the members of each group of the cluster announce, by name."""
        return await self._everywhere(self._runtime.announced_assignors(), self._storage.announced_assignors)

    async def _everywhere(self, ours: Iterable[T], stored: Callable[[], Awaitable[list[T]]]) -> list[T]:
        slots = set(self._held_slots.in_state(SlotState.SERVING))
        found = {each.group: each for each in ours}
        if len(slots) < self._held_slots.slots:
            found |= {e.group: e for e in await stored() if self._held_slots.slot_of(e.group) not in slots}
        return [found[name] for name in sorted(found)]


def _summary(view: ClusterState) -> ManagerListResponse:
    living = view.living()
    ids = {peer.identity.incarnation: peer.identity.id for peer in view.peers}
    return ManagerListResponse(
        managers=tuple(
            ManagerSummary(
                id=peer.identity.id,
                url=peer.identity.url,
                alive=peer.identity.incarnation in living,
                slots=sum(slot.holder == peer.identity.incarnation for slot in view.slots),
                lease_left_ms=peer.lease_left_ms,
                started_at_ms=peer.started_at_ms,
            )
            for peer in view.peers
        ),
        slots=tuple(
            SlotSummary(slot=slot.slot, epoch=slot.epoch, manager=ids.get(slot.holder or ""))
            for slot in view.slots
        ),
    )
