"""The managers of one history, and the storage in which they find out who has which group."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from manager.cluster.slots import slot_of
from tests.simulation.carrier import SimCarrier
from tests.simulation.manager import SimManager
from tests.simulation.slot_controller import SLOTS
from tests.simulation.store import Store

if TYPE_CHECKING:
    from manager.settings import GroupSettings
    from tests.simulation.invariants import Watch
    from tests.simulation.plan import Plan, Weather
    from tests.simulation.world import World


class Cluster:
    """The managers of one history and the storage they share."""

    def __init__(self, world: World, plan: Plan, settings: GroupSettings, watch: Watch) -> None:
        self.world = world
        self.weather: Weather = plan.weather
        self.watch = watch
        self.groups = plan.groups
        self.store = Store(watch, SLOTS)
        self.crashes = 0
        self._has_transfers = plan.transfers
        self._ids = count(1)
        self.managers = [SimManager(number, self, settings) for number in range(plan.managers)]

    @property
    def takeovers(self) -> int:
        """How often a slot has changed hands."""
        return self.store.leases.takeovers

    def began(self, manager: SimManager) -> None:
        """A manager has begun another life."""
        if self._has_transfers:
            SimCarrier(manager)

    def new_id(self) -> str:
        """The unique half of a member id."""
        return f"id{next(self._ids)}"

    def owner(self, group: str) -> SimManager | None:
        """Who has the group, as the storage says."""
        holder = self.store.leases.holder(slot_of(group, SLOTS))
        return next((m for m in self.managers if m.controller.me.incarnation == holder), None)

    def hand_over(self, group: str) -> None:
        """The owner gives all it has to others in order, as one that is stopped does."""
        owner = self.owner(group)
        if owner is not None and owner.is_up and not owner.is_paused:
            owner.hand_over()
