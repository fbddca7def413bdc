"""A manager's one slot, as the rules of the cluster have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from manager.cluster.held_slots import HeldSlots
from manager.cluster.slot_routing import SlotRouting
from manager.storage.cluster_state import ManagerIdentity

if TYPE_CHECKING:
    from collections.abc import Collection

ME = ManagerIdentity("m", "m-1", "http://m")


class OneSlot:
    """All groups are in it; it is served from the beginning."""

    def __init__(self, storage: object) -> None:
        self._held = HeldSlots(ME, 1, None)
        self.routing = SlotRouting(self._held, cast("Any", storage), cast("Any", self))
        self.take(1)
        self._held.loaded([0])

    async def keep(self, _: ManagerIdentity, slots: Collection[int]) -> dict[int, int]:
        """As the table of leases would."""
        return dict.fromkeys(slots, 1)

    def take(self, epoch: int) -> None:
        """It is ours under that epoch, and being loaded."""
        self._held.took({0: epoch}, self._held.term)

    def lose_and_take_again(self, epoch: int) -> None:
        """Somebody else had it for a moment; by now its groups are loaded."""
        self._held.drop([0])
        self.take(epoch)
        self._held.loaded([0])
