"""Slots and leases as the database keeps them: `manager.storage.lease_table` in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.storage.cluster_state import ClusterState, ManagerIdentity, Peer, Slot

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class LeaseTable:
    """Every method is one transaction at `now`, which is the database's clock."""

    def __init__(self, slots: int) -> None:
        self.epochs = dict.fromkeys(range(slots), 0)
        self.takeovers = 0
        self._holders: dict[int, str | None] = dict.fromkeys(range(slots))
        self._managers: dict[str, tuple[ManagerIdentity, int]] = {}

    def holder(self, slot: int) -> str | None:
        """The incarnation that has `slot`."""
        return self._holders[slot]

    def is_held(self, fence: Mapping[int, int]) -> bool:
        """Whether these are the present epochs."""
        return all(self.epochs[slot] == epoch for slot, epoch in fence.items())

    def register(self, me: ManagerIdentity, lease_ms: int, now: int) -> None:
        """Take the place of the same manager's former process, if there is one."""
        former = self._managers.get(me.id)
        if former is not None:
            for slot, holder in self._holders.items():
                if holder == former[0].incarnation:
                    self._give(slot, me.incarnation)
        self._managers[me.id] = (me, now + lease_ms)

    def renew(self, me: ManagerIdentity, lease_ms: int, now: int) -> ClusterState:
        """Prolong the lease, and look around."""
        self._managers[me.id] = (me, now + lease_ms)
        peers = tuple(Peer(identity, 0, expires - now) for identity, expires in self._managers.values())
        slots = tuple(Slot(slot, epoch, self._holders[slot]) for slot, epoch in self.epochs.items())
        return ClusterState(peers, slots)

    def take(self, me: ManagerIdentity, slots: Collection[int], now: int) -> dict[int, int]:
        """Those that are free, or ours already."""
        living = {identity.incarnation for identity, expires in self._managers.values() if expires > now}
        return {
            slot: self._give(slot, me.incarnation)
            for slot in slots
            if self._holders[slot] == me.incarnation or self._holders[slot] not in living
        }

    def keep(self, me: ManagerIdentity, slots: Collection[int]) -> dict[int, int]:
        """Those that are still ours, under new epochs."""
        return {s: self._give(s, me.incarnation) for s in slots if self._holders[s] == me.incarnation}

    def hand_over(self, give: Mapping[int, tuple[int, str | None]]) -> None:
        """To their heirs, where the epoch is still the present one."""
        for slot, (epoch, heir) in give.items():
            if self.epochs[slot] == epoch:
                self._give(slot, heir)

    def _give(self, slot: int, holder: str | None) -> int:
        self.takeovers += self._holders[slot] != holder
        self._holders[slot] = holder
        self.epochs[slot] += 1
        return self.epochs[slot]
