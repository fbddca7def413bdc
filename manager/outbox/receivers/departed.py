"""Receivers that are in the file no more: nobody tells them anything, so nobody would find one back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from manager.clock import read_clocks
from manager.outbox.receivers.health_keeper import HealthKeeper
from manager.outbox.receivers.subscriber import PREFIX
from protocol.messages.alarm_receivers import ReceiverState

if TYPE_CHECKING:
    from collections.abc import Collection

    from manager.outbox.sender import WebhookRouting
    from manager.storage.base import EventLog

LOOK_EVERY_S: Final = 10.0
IN_TROUBLE: Final = frozenset({ReceiverState.FAILING, ReceiverState.AWAY})


class Departed:
    """Takes back what is told of them.

    Args:
        known: the names, in the database, of those that are in the file, and of their addresses.
        fallbacks: the receivers that are told.
        events: where it is kept how receivers are.
        routing: which manager would tell whom; that one looks.
    """

    def __init__(
        self,
        known: Collection[str],
        fallbacks: tuple[str, ...],
        events: EventLog,
        routing: WebhookRouting,
    ) -> None:
        self._known = frozenset(known)
        self._fallbacks = fallbacks
        self._events = events
        self._routing = routing

    async def look(self) -> None:
        """Have those that are failing or away be neither; raises `StorageError`."""
        for name, health in (await self._events.health()).items():
            is_gone = name.startswith(PREFIX) and name not in self._known
            if is_gone and health.state in IN_TROUBLE and self._routing.is_mine(_receiver(name)):
                await self._take_back(name)

    async def _take_back(self, name: str) -> None:
        keeper = HealthKeeper(
            name,
            name.removeprefix(PREFIX),
            self._events,
            self._fallbacks,
            epochs=partial(self._routing.epochs, (_receiver(name),)),
            now_ms=lambda: read_clocks().wall,
        )
        await keeper.begin()
        await keeper.is_gone()


def _receiver(name: str) -> str:
    """Whose slot an address goes by: its receiver's."""
    return name.partition("/")[0]
