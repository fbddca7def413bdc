"""A receiver of alarms as a subscriber of the log: told the alarms that name it; others hear how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import outcome_of
from manager.outbox.receivers.health import LONGEST_PAUSE_MS, after_delivery, after_refusal
from manager.outbox.receivers.samples import away_notice
from manager.storage.base import StorageError
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from manager.metrics.meter import Meter
    from manager.outbox.receivers.channel import Channel
    from manager.storage.base import EventLog

log = structlog.get_logger(__name__)

PREFIX: Final = "alarm-receiver:"
"""What names in the database begin with that are no URLs of webhooks."""


class AlarmSubscriber:
    """Tells one receiver.

    Args:
        receiver: its name.
        channel: the way to it.
        events: where its health is kept.
        fallbacks: the receivers that are told when it is away, and when it is back.
        now_ms: milliseconds since 1970.
        meter: counts what becomes of messages.
    """

    longest_pause_ms: int | None = LONGEST_PAUSE_MS

    def __init__(
        self,
        receiver: str,
        channel: Channel,
        events: EventLog,
        fallbacks: tuple[str, ...],
        *,
        now_ms: Callable[[], int],
        meter: Meter,
    ) -> None:
        self._receiver = receiver
        self._channel = channel
        self._events = events
        self._fallbacks = fallbacks
        self._now_ms = now_ms
        self._meter = meter
        self._health = ReceiverHealth()

    @property
    def name(self) -> str:
        """By which it is known in the database."""
        return PREFIX + self._receiver

    @property
    def about(self) -> Mapping[str, str]:
        """Its name."""
        return {"receiver": self._receiver}

    def wants(self, event: Event) -> bool:
        """Alarms that name it; and that there may have been some that are not kept any more."""
        if event.alarm is not None:
            return self._receiver in event.alarm.receivers
        return event.type == EventType.EVENTS_PRUNED

    async def begin(self) -> None:
        """Go on from what another manager knows of it."""
        self._health = (await self._events.health()).get(self.name, ReceiverHealth())
        self._meter.know_receiver(self._receiver)
        self._meter.receiver_is_away(self._receiver, is_away=self._health.is_away)

    def end(self) -> None:
        """Another manager's metrics have it from now on."""
        self._meter.forget_receiver(self._receiver)

    async def post(self, event: Event) -> Refusal | None:
        """Tell it; None when the event was taken."""
        outcome = await outcome_of(self._channel.send(event), self._receiver)
        if isinstance(outcome, Refusal):
            self._meter.told_receiver(self._receiver, "refused")
            await self._note(after_refusal(self._health, self._now_ms(), outcome.reason))
            return outcome
        if outcome.note is not None:
            log.error("not everybody got an alarm", **self.about, event_id=event.id, reason=outcome.note)
        self._meter.told_receiver(self._receiver, "taken")
        await self._note(after_delivery(self._health, self._now_ms()))
        return None

    def gave_up(self, event: Event) -> None:
        """It is counted; the log has it."""
        del event
        self._meter.told_receiver(self._receiver, "given_up")

    async def _note(self, health: ReceiverHealth) -> None:
        """Keep how it is, if that has changed. That it cannot be kept now must not repeat a message."""
        if health == self._health:
            return
        told = None if health.state is ReceiverState.FAILING else self._told(health)
        try:
            await self._events.keep_health(self.name, health, told)
        except StorageError as error:
            log.warning("cannot keep how a receiver is", **self.about, why=str(error))
            return  # the next outcome is another chance
        self._health = health
        self._meter.receiver_is_away(self._receiver, is_away=health.is_away)

    def _told(self, health: ReceiverHealth) -> Event:
        """What others are told of it."""
        since_ms = (health if health.is_away else self._health).since_ms or 0
        notice = away_notice(self._receiver, self._fallbacks, since_ms, health.last_error)
        kind = EventType.ALARM_FIRING if health.is_away else EventType.ALARM_RESOLVED
        return Event(id=0, at_ms=self._now_ms(), type=kind, alarm=notice)
