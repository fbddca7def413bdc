"""What anybody may ask any manager: who has which group, which managers and which groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from manager.cluster.leases import SlotState
from protocol.messages.cluster import ManagerListResponse, ManagerSummary, SlotSummary

if TYPE_CHECKING:
    from manager.cluster.leases import Leases
    from manager.cluster.tenancy import SlotTenancy
    from manager.cluster.view import View
    from manager.core.tallies import Tally
    from manager.runtime.runtime import Runtime
    from manager.storage.sql import SqlStorage
    from protocol.messages.groups import Coordinator, GroupSummary


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


class ClusterDirectory:
    """`Directory` by leases: what is ours from memory, what is others' from the database."""

    def __init__(self, leases: Leases, tenancy: SlotTenancy, storage: SqlStorage, runtime: Runtime) -> None:
        self._leases = leases
        self._tenancy = tenancy
        self._storage = storage
        self._runtime = runtime

    def is_here(self, group: str) -> bool:
        """Ours, or nobody else's."""
        coordinator = self._tenancy.coordinator(group)
        return coordinator is None or coordinator.id == self._leases.me.id

    def coordinator(self, group: str) -> Coordinator | None:
        """As the last look at the database showed."""
        return self._tenancy.coordinator(group)

    async def managers(self) -> ManagerListResponse:
        """As the database shows them now."""
        return _summary(await self._storage.leases.view())

    async def groups(self) -> list[GroupSummary]:
        """Those of our slots as they are, the others as they are stored."""
        ours = set(self._leases.in_state(SlotState.SERVING))
        here = {group.group: group for group in self._runtime.groups()}
        if len(ours) < self._leases.slots:
            stored = await self._storage.summaries()
            here |= {g.group: g for g in stored if self._leases.slot_of(g.group) not in ours}
        return [here[name] for name in sorted(here)]

    async def tallies(self) -> list[Tally]:
        """As `groups`."""
        ours = set(self._leases.in_state(SlotState.SERVING))
        here = {tally.group: tally for tally in self._runtime.tallies()}
        if len(ours) < self._leases.slots:
            stored = await self._storage.tallies()
            here |= {t.group: t for t in stored if self._leases.slot_of(t.group) not in ours}
        return [here[name] for name in sorted(here)]


def _summary(view: View) -> ManagerListResponse:
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
