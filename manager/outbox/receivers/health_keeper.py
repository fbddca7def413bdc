"""Keeps how one receiver is in the database, where all managers see it, and has others told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from manager.outbox.receivers.health import after_delivery, after_refusal, as_new
from manager.outbox.receivers.samples import away_notice
from manager.storage.base import NO_FENCE, StaleEpochError, StorageError
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from manager.storage.base import EventLog

log = structlog.get_logger(__name__)


class HealthKeeper:
    """Of one receiver.

    What was found under an epoch is written under it: a manager that was frozen while it sent has nothing to
    say any more when another one tells the receiver.

    Args:
        name: by which it is known in the database.
        receiver: by which people know it.
        events: where its health is kept.
        fallbacks: the receivers that are told when it is away, and when it is back.
        epochs: the slot that the right to tell it goes by, and its epoch; raises `StaleEpochError`.
        now_ms: milliseconds since 1970.
    """

    def __init__(
        self,
        name: str,
        receiver: str,
        events: EventLog,
        fallbacks: tuple[str, ...],
        *,
        epochs: Callable[[], Mapping[int, int]],
        now_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._receiver = receiver
        self._events = events
        self._fallbacks = fallbacks
        self._epochs = epochs
        self._now_ms = now_ms
        self._fence = NO_FENCE
        self.health = ReceiverHealth()

    async def begin(self) -> None:
        """Go on from what another manager knows of it; raises `StorageError`."""
        self._fence = self._epochs()
        self.health = (await self._events.health()).get(self._name, ReceiverHealth())

    async def taken(self) -> None:
        """It took a message: that is so under whichever epoch, and there may be none after it for days."""
        if not await self._keep(after_delivery(self.health, self._now_ms())):
            await self._keep(after_delivery(self.health, self._now_ms()))

    async def refused(self, reason: str) -> None:
        """It did not."""
        await self._keep(after_refusal(self.health, self._now_ms(), reason))

    async def is_back(self) -> None:
        """It has taken all that waited for it.

        Raises:
            StaleEpochError: another manager tells it by now.
            StorageError: it cannot be kept.
        """
        await self._write(after_delivery(self.health, self._now_ms()))

    async def is_gone(self) -> None:
        """Nobody tells it anything any more; should it come back, its time begins anew.

        Raises:
            StaleEpochError: another manager would tell it by now.
            StorageError: it cannot be kept.
        """
        await self._write(as_new(self.health, self._now_ms()))

    async def _keep(self, health: ReceiverHealth) -> bool:
        """If it has changed; False if the epoch has, too, and what is known by now was read again.

        That it cannot be kept now must not repeat a message: the next outcome is another chance.
        """
        if health == self.health:
            return True
        try:
            await self._write(health)
        except StaleEpochError:
            return not await self._begin_anew()
        except StorageError as error:
            log.warning("cannot keep how a receiver is", receiver=self._receiver, why=str(error))
        return True

    async def _write(self, health: ReceiverHealth) -> None:
        told = None if health.state is ReceiverState.FAILING else self._told(health)
        await self._events.keep_health(self._name, health, told, self._fence)
        self.health = health

    async def _begin_anew(self) -> bool:
        """Another manager has told it meanwhile, which knows better; or the epoch was raised, and no more."""
        log.warning("how a receiver is was not kept: its epoch is over", receiver=self._receiver)
        try:
            await self.begin()
        except StorageError as error:
            log.warning("cannot read how a receiver is", receiver=self._receiver, why=str(error))
            return False
        return True

    def _told(self, health: ReceiverHealth) -> Event:
        """What others are told of it."""
        since_ms = (health if health.is_away else self.health).since_ms or 0
        notice = away_notice(self._receiver, self._fallbacks, since_ms, health.last_error)
        kind = EventType.ALARM_FIRING if health.is_away else EventType.ALARM_RESOLVED
        return Event(id=0, at_ms=self._now_ms(), type=kind, alarm=notice)
