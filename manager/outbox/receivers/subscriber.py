"""A receiver of alarms as a subscriber of the log: told the alarms that name it; others hear how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import outcome_of
from manager.outbox.receivers.health import LONGEST_PAUSE_MS
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.metrics.meter import MessageResult, Meter
    from manager.outbox.receivers.channel import Channel
    from manager.outbox.receivers.health_keeper import HealthKeeper
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

PREFIX: Final = "alarm-receiver:"
"""What names in the database begin with that are no URLs of webhooks."""


class AlarmSubscriber:
    """Tells one receiver.

    Args:
        receiver: its name.
        channel: the way to it.
        keeper: keeps how it is.
        meter: counts what becomes of messages.
    """

    longest_pause_ms: int | None = LONGEST_PAUSE_MS

    def __init__(self, receiver: str, channel: Channel, keeper: HealthKeeper, meter: Meter) -> None:
        self._receiver = receiver
        self._channel = channel
        self._keeper = keeper
        self._meter = meter
        self._is_telling = False

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
        await self._keeper.begin()
        self._meter.know_receiver(self._receiver)
        self._is_telling = True
        self.measure()

    def end(self) -> None:
        """Another manager's metrics have it from now on."""
        self._is_telling = False
        self._meter.forget_receiver(self._receiver)

    async def post(self, event: Event) -> Refusal | None:
        """Tell it; None when the event was taken."""
        outcome = await outcome_of(self._channel.send(event), self._receiver)
        if isinstance(outcome, Refusal):
            self.count("refused")
            await self._keeper.refused(outcome.reason)
            self.measure()
            return outcome
        if outcome is None:
            return None
        if outcome.note is not None:
            log.error("not everybody got an alarm", **self.about, event_id=event.id, reason=outcome.note)
        self.count("taken")
        await self._keeper.taken()
        self.measure()
        return None

    def gave_up(self, event: Event) -> None:
        """It is counted; the log has it."""
        del event
        self.count("given_up")

    async def caught_up(self, position: int) -> None:
        """Nothing is to be done."""

    @property
    def is_away(self) -> bool:
        """Whether others were told so."""
        return self._keeper.health.is_away

    def count(self, result: MessageResult) -> None:
        """A message has come to this."""
        self._meter.told_receiver(self._receiver, result)

    def measure(self) -> None:
        """Have the metrics say how it is, while this manager tells it."""
        if self._is_telling:
            self._meter.receiver_is_away(self._receiver, is_away=self.is_away)
