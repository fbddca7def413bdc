"""Which manager has which group, under which epoch: a lease service in a few lines."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tests.simulation.manager import SimManager
from tests.simulation.store import Store

if TYPE_CHECKING:
    from manager.settings import GroupSettings
    from tests.simulation.invariants import Watch
    from tests.simulation.plan import Plan, Weather
    from tests.simulation.world import World

RENEW_EVERY_MS = 500


class Cluster:
    """The managers of one history and the storage they share."""

    def __init__(self, world: World, plan: Plan, settings: GroupSettings, watch: Watch) -> None:
        self.world = world
        self.weather: Weather = plan.weather
        self.watch = watch
        self.store = Store(watch)
        self.crashes = self.takeovers = 0
        self._ids = count(1)
        self._owners: dict[str, SimManager | None] = dict.fromkeys(plan.groups)
        self._handing: dict[str, SimManager] = {}
        self.managers = [SimManager(number, self, settings) for number in range(plan.managers)]
        self._share()

    def new_id(self) -> str:
        """The unique half of a member id."""
        return f"id{next(self._ids)}"

    def owner(self, group: str) -> SimManager | None:
        """Who has the group, as the storage says."""
        return self._owners[group]

    def _share(self) -> None:
        """Renew the leases of those who live; give away what nobody has."""
        for manager in self.managers:
            manager.renew_lease()
            self.settled(manager)
        for group in self._owners:
            if not self._is_held(group):
                self._give_away(group)
        self.world.after(RENEW_EVERY_MS, self._share)

    def _is_held(self, group: str) -> bool:
        """Whether somebody may still believe that the group is theirs, or is about to get it."""
        owner = self._owners[group]
        if owner is None or not owner.is_up or owner.lease_until <= self.world.now:
            return False
        heir = self._handing.get(group)
        return group in owner.epochs or (heir is not None and heir.is_up)

    def _give_away(self, group: str) -> None:
        awake = [m for m in self.managers if m.is_up and m.lease_until > self.world.now and not m.is_paused]
        if awake and not self.store.is_down:
            self._give(group, self.world.chance.choice(awake))

    def _give(self, group: str, manager: SimManager) -> None:
        self._handing.pop(group, None)
        self._owners[group] = manager
        self.takeovers += 1
        if group in manager.epochs:
            manager.let_go(group)
        self.world.note(f"manager {manager.number}", f"takes {group} up")
        manager.take_up(group, self.store.new_epoch(group))

    def hand_over(self, group: str) -> None:
        """The owner gives the group to another in order: it lets go first, and stores what it decided."""
        owner = self._owners[group]
        others = [m for m in self.managers if m is not owner and m.is_up and not m.is_paused]
        if owner is None or not others or group in self._handing:
            return
        if self._is_held(group) and not owner.is_paused:
            owner.let_go(group)
            self._handing[group] = self.world.chance.choice(others)
            self.settled(owner)

    def settled(self, manager: SimManager) -> None:
        """A transaction of `manager` has ended: what it hands over may be free to go."""
        for group, heir in tuple(self._handing.items()):
            if self._owners[group] is manager and manager.commits.is_settled(group) and heir.is_up:
                self._give(group, heir)
