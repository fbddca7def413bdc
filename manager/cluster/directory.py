"""What anybody may ask any manager: who has which group, which managers and which groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from manager.cluster.held_slots import SlotState
from protocol.messages.cluster import ManagerListResponse, ManagerSummary, SlotSummary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from manager.cluster.held_slots import HeldSlots
    from manager.cluster.slot_routing import SlotRouting
    from manager.core.views.tallies import Tally
    from manager.runtime.runtime import Runtime
    from manager.storage.cluster_state import ClusterState
    from manager.storage.sql import SqlStorage
    from protocol.messages.assignors import GroupAssignors
    from protocol.messages.groups import Coordinator, GroupSummary


class _OfAGroup(Protocol):
    @property
    def group(self) -> str: ...


T = TypeVar("T", bound=_OfAGroup)


class Directory(Protocol):
    """Asked by the HTTP front."""

    def is_here(self, group: str) -> bool:
        """Whether requests of `group` are answered by this process, or will be in a moment."""
        ...

    def coordinator(self, group: str) -> Coordinator | None:
        """The manager that has `group`; None when none is known to."""
        ...

    async def managers(self) -> ManagerListResponse:
        """All managers and slots.

        Raises:
            StorageError: the database is away.
        """
        ...

    async def groups(self) -> list[GroupSummary]:
        """A line for each group of the cluster, by name.

        Raises:
            StorageError: the database is away.
        """
        ...

    async def tallies(self) -> list[Tally]:
        """The figures of each group of the cluster, by name.

        Raises:
            StorageError: the database is away.
        """
        ...

    async def assignors(self) -> list[GroupAssignors]:
        """What the members of each group of the cluster announce, by name.

        Raises:
            StorageError: the database is away.
        """
        ...


class OneManager:
    """`Directory` of a runtime that has all groups."""

    def __init__(self, runtime: Runtime, me: Coordinator) -> None:
        self._runtime = runtime
        self._me = me

    def is_here(self, group: str) -> bool:  # noqa: ARG002 - the interface's
        """Where else?"""
        return True

    def coordinator(self, group: str) -> Coordinator | None:  # noqa: ARG002 - the interface's
        """This one."""
        return self._me

    async def managers(self) -> ManagerListResponse:
        """This one."""
        me = ManagerSummary(id=self._me.id, url=self._me.url, alive=True, slots=0)
        return ManagerListResponse(managers=(me,))

    async def groups(self) -> list[GroupSummary]:
        """Those in memory."""
        return self._runtime.groups()

    async def tallies(self) -> list[Tally]:
        """Likewise."""
        return self._runtime.tallies()

    async def assignors(self) -> list[GroupAssignors]:
        """Likewise."""
        return self._runtime.assignors()


class ClusterDirectory:
    """`Directory` by leases: what is ours from memory, what is others' from the database."""

    def __init__(
        self, held_slots: HeldSlots, routing: SlotRouting, storage: SqlStorage, runtime: Runtime
    ) -> None:
        self._held_slots = held_slots
        self._routing = routing
        self._storage = storage
        self._runtime = runtime

    def is_here(self, group: str) -> bool:
        """Ours, or nobody else's."""
        coordinator = self._routing.coordinator(group)
        return coordinator is None or coordinator.id == self._held_slots.me.id

    def coordinator(self, group: str) -> Coordinator | None:
        """As the last look at the database showed."""
        return self._routing.coordinator(group)

    async def managers(self) -> ManagerListResponse:
        """As the database shows them now."""
        return _summary(await self._storage.leases.view())

    async def groups(self) -> list[GroupSummary]:
        """Those of our slots as they are, the others as they are stored."""
        return await self._everywhere(self._runtime.groups(), self._storage.summaries)

    async def tallies(self) -> list[Tally]:
        """As `groups`."""
        return await self._everywhere(self._runtime.tallies(), self._storage.tallies)

    async def assignors(self) -> list[GroupAssignors]:
        """As `groups`."""
        return await self._everywhere(self._runtime.assignors(), self._storage.assignors)

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
