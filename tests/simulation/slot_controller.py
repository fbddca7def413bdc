"""Renews a manager's lease and moves its slots: the real rules, on messages to a store that may get lost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manager.cluster.held_slots import HeldSlots, SlotState
from manager.storage.cluster_state import ManagerIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from manager.storage.cluster_state import ClusterState
    from tests.simulation.lease_table import LeaseTable
    from tests.simulation.manager import SimManager

SLOTS = 3
LEASE_MS = 1500
LOOK_EVERY_MS = 250
GIVE_UP_AFTER_MS = 500


class SimSlotController:
    """Of one life of a manager; what is on its way to the store when that ends may arrive all the same."""

    def __init__(self, manager: SimManager) -> None:
        self.manager = manager
        self.me = ManagerIdentity(f"m{manager.number}", f"m{manager.number}-{manager.life}", "")
        self.leases = HeldSlots(self.me, SLOTS, LEASE_MS)
        self._is_registered = False
        self._moving_since: int | None = None
        self._look()

    @property
    def _table(self) -> LeaseTable:
        return self.manager.cluster.store.leases

    def _send(self, statement: Callable[[], Any], heard: Callable[[Any], None]) -> None:
        """Have `statement` executed, if it gets there; `heard` has its result, if that gets back."""
        manager, life = self.manager, self.manager.life
        world, store = manager.world, manager.cluster.store

        def arrive() -> None:
            if store.is_down or store.is_full or world.happens(manager.weather.failed / 2):
                return
            result = statement()
            if not world.happens(manager.weather.failed / 2):
                world.after(manager.some_time(slowness=0.2), partial(back, result))

        def back(result: Any) -> None:
            if life == manager.life:
                manager.when_awake(lambda: heard(result))

        world.after(manager.some_time(slowness=0.2), arrive)

    def _look(self) -> None:
        """Every now and then; to begin with, register."""
        if self._is_registered:
            self._send(self._renew, partial(self._renewed, self.manager.mono))
        else:
            self._send(self._register, self._registered)
        self.manager.later(LOOK_EVERY_MS, self._look)

    def _renew(self) -> ClusterState:
        return self._table.renew(self.me, LEASE_MS, self.manager.world.now)

    def _register(self) -> None:
        self._table.register(self.me, LEASE_MS, self.manager.world.now)

    def _registered(self, _: None) -> None:
        self._is_registered = True
        self._send(self._renew, partial(self._renewed, self.manager.mono))

    def _renewed(self, sent_at: int, view: ClusterState) -> None:
        self.manager.check_lease()
        moves = self.leases.renewed(sent_at, view)
        self.manager.step_down(moves.lost)
        if self._moving_since is not None and self.manager.mono - self._moving_since < GIVE_UP_AFTER_MS:
            return
        self._moving_since = None
        if moves.take:
            self._take(moves.take)
        elif self.leases.in_state(SlotState.LOADING):
            self._load()
        elif moves.give:
            self.hand_over(moves.give)

    def _move(self, statement: Callable[[], Any], heard: Callable[[Any], None]) -> None:
        """One at a time; an answer that comes after it was given up is an error, and heard by nobody."""
        self._moving_since = began = self.manager.mono

        def in_time(result: Any) -> None:
            if self._moving_since == began:
                self._moving_since = None
                self.manager.check_lease()
                heard(result)

        self._send(statement, in_time)

    def _take(self, slots: Collection[int]) -> None:
        term = self.leases.term
        self._move(
            lambda: self._table.take(self.me, slots, self.manager.world.now),
            lambda epochs: self._took(term, epochs),
        )

    def _took(self, term: int, epochs: Mapping[int, int]) -> None:
        self.leases.took(epochs, term)
        self._load()

    def _load(self) -> None:
        slots = self.leases.in_state(SlotState.LOADING)
        if slots:
            self._move(lambda: self.manager.read(slots), lambda stored: self._loaded(slots, stored))

    def _loaded(self, slots: Collection[int], stored: Any) -> None:
        self.manager.take_up(stored)
        self.leases.loaded(slots)

    def hand_over(self, give: Mapping[int, str | None]) -> None:
        """Answer no longer for these slots, store what was decided, then give them away."""
        self._moving_since = self.manager.mono
        epochs = self.leases.close(give)
        groups = self.manager.close(epochs)
        self.manager.when_settled(groups, lambda: self._settled(give, epochs))

    def _settled(self, give: Mapping[int, str | None], epochs: Mapping[int, int]) -> None:
        closing = {
            slot: epoch for slot, epoch in epochs.items() if self.leases.state(slot) is SlotState.CLOSING
        }
        over = {slot: (epoch, give[slot]) for slot, epoch in closing.items()}
        self._moving_since = None
        self._move(lambda: self._table.hand_over(over), lambda _: None)
        self.leases.drop(closing)
        self.manager.step_down(closing)
