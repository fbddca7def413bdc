"""The managers and slots as the database shows them at one moment."""

from __future__ import annotations

import msgspec


class ManagerIdentity(msgspec.Struct, frozen=True):
    """A manager process: `id` and `url` outlive it, `incarnation` is its own."""

    id: str
    incarnation: str
    url: str


class Peer(msgspec.Struct, frozen=True):
    """A manager that is registered; `lease_left_ms` is by the database's clock, None for one without end."""

    identity: ManagerIdentity
    started_at_ms: int
    lease_left_ms: int | None

    @property
    def is_alive(self) -> bool:
        """Whether its lease has not run out."""
        return self.lease_left_ms is None or self.lease_left_ms > 0


class Slot(msgspec.Struct, frozen=True):
    """A slot: `holder` is the incarnation that has it, `epoch` grew at every change of hands."""

    slot: int
    epoch: int
    holder: str | None


class ClusterState(msgspec.Struct, frozen=True):
    """All managers and all slots, these in order."""

    peers: tuple[Peer, ...]
    slots: tuple[Slot, ...]

    def living(self) -> dict[str, Peer]:
        """Managers whose leases have not run out, by incarnation."""
        return {peer.identity.incarnation: peer for peer in self.peers if peer.is_alive}
