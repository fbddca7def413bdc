"""Keeps this manager's lease, and has slots taken, loaded, closed and handed over as the rules say."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from manager.background.supervision import Loop, once, tell_bug
from manager.clock import read_clocks
from manager.cluster.held_slots import SlotState
from manager.storage.base import GoneError, StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from manager.cluster.held_slots import HeldSlots, Moves
    from manager.cluster.slot_routing import SlotRouting
    from manager.runtime.slot_loader import SlotLoader
    from manager.storage.lease_table import LeaseTable

log = structlog.get_logger(__name__)

LOOKS_A_LEASE = 6
"""How often the lease is renewed within its time."""
TRIES_A_LEASE = 3
"""How often within its time an unanswered renewal is given up for another one."""
AT_ONCE_S = 0.1
"""Between two looks that strangers have asked for: somebody may just have handed something over to us."""


class SlotController:
    """One of several managers. `deposed` is set to the reason when another process has this one's id."""

    def __init__(
        self,
        held_slots: HeldSlots,
        table: LeaseTable,
        routing: SlotRouting,
        loader: SlotLoader,
        lease_ms: int,
    ) -> None:
        self.deposed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._held_slots = held_slots
        self._table = table
        self._routing = routing
        self._loader = loader
        self._lease_ms = lease_ms
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._watch: Loop | None = None
        self._moving: asyncio.Task[None] | None = None
        self._is_cut_off = False
        routing.on_stranger = self._wake.set

    async def start(self) -> None:
        """Become one of the managers, and take up what is due.

        Raises:
            StartupError: the id is another living manager's.
            StorageError: the database is away.
        """
        await self._table.register(self._held_slots.me, self._lease_ms, is_starting=True)
        try:
            await self._look()
        except GoneError:
            await self._come_back()
        self.watch()  # to load may take longer than a lease
        if self._moving is not None:
            await self._moving

    def watch(self) -> None:
        """From now on, by itself: when the lease is due, or a stranger asks."""
        period_s = self._lease_ms / LOOKS_A_LEASE / 1000
        self._watch = Loop("keeping the lease", self._run, period_s, "the lease was not renewed")

    async def stop(self) -> None:
        """Hand every slot over at once; the others need not wait for the lease to end."""
        if self._watch is not None:
            await self._watch.stop()
        if self._moving is not None:
            self._moving.cancel()
            await asyncio.wait([self._moving])
        with suppress(StorageError):
            await self._hand_over(self._held_slots.leave())
            await self._table.leave(self._held_slots.me)
        if self._alarm is not None:
            self._alarm.cancel()

    async def _run(self) -> None:
        pause_s = self._lease_ms / LOOKS_A_LEASE / 1000
        while not self.deposed.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await asyncio.sleep(min(AT_ONCE_S, pause_s / 2))
                    await self._wake.wait()
            self._wake.clear()
            await self._look_safely()

    async def _look_safely(self) -> None:
        try:
            await self._look()
        except GoneError:
            await self._return()
        except StorageError as error:
            if not self._is_cut_off:
                log.warning("the lease was not renewed", error=str(error))
            self._is_cut_off = True
        except Exception as error:  # noqa: BLE001 - the lease must be renewed all the same
            tell_bug("looking after the lease", error)

    async def _return(self) -> None:
        """The lease ran out long ago, and nobody knows this manager any more: begin anew, with nothing."""
        log.warning("this manager is not registered any more: its slots are others' by now")
        self._loader.step_down(self._held_slots.lapse())
        try:
            await self._come_back()
        except StorageError as error:
            log.warning("not registered again", error=str(error))
        except Exception as error:  # noqa: BLE001 - a StartupError: the id is another process's
            if not self.deposed.done():
                self.deposed.set_result(error)

    async def _come_back(self) -> None:
        """Unless another process has the id by now."""
        await self._table.register(self._held_slots.me, self._lease_ms, is_starting=False)
        await self._look()

    async def _look(self) -> None:
        sent_at = read_clocks().mono
        within_s = self._lease_ms / TRIES_A_LEASE / 1000
        view = await self._table.renew(self._held_slots.me, self._lease_ms, within_s)
        self._loader.check_lease()  # what lapsed while this was on its way stays lapsed
        moves = self._held_slots.renewed(sent_at, view)
        self._is_cut_off = False
        self._set_alarm()
        if moves.lost:
            log.warning("another manager has taken over", slots=len(moves.lost))
            self._loader.step_down(moves.lost)
        if self._moving is None or self._moving.done():
            self._moving = once("moving slots", partial(self._move, moves))

    def _set_alarm(self) -> None:
        """Those who wait are answered in time even if nobody comes to ask."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay_ms = self._held_slots.lapses_at - read_clocks().mono
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(max(delay_ms, 0) / 1000, self._loader.check_lease)

    async def _move(self, moves: Moves) -> None:
        """Service first: what is free is taken and loaded before anything is given away."""
        try:
            if moves.take:
                await self._take(moves.take)
            await self._load()
            if moves.give:
                await self._hand_over(moves.give)
        except StorageError as error:
            log.warning("slots were not moved, another look will tell", error=str(error))

    async def _take(self, slots: Collection[int]) -> None:
        term = self._held_slots.term
        taken = await self._table.take(self._held_slots.me, slots)
        self._loader.check_lease()
        self._held_slots.took(taken, term)

    async def _load(self) -> None:
        slots = self._held_slots.in_state(SlotState.LOADING)
        if slots:
            await self._loader.load(slots)
            self._routing.loaded(slots)
            log.info("slots taken over", slots=len(slots))

    async def _hand_over(self, give: Mapping[int, str | None]) -> None:
        epochs = self._held_slots.close(give)
        await self._loader.settle(self._loader.close(epochs))
        try:
            await self._table.hand_over({slot: (epoch, give[slot]) for slot, epoch in epochs.items()})
        finally:
            self._drop(epochs)
        log.info("slots handed over", slots=len(epochs))

    def _drop(self, slots: Collection[int]) -> None:
        self._held_slots.drop(slots)
        self._loader.step_down(slots, "handed_over")
