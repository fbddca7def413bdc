"""What a receiver of alarms makes of each outcome: what is told of it, kept and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manager.metrics.meter import Meter
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import Taken
from manager.outbox.receivers.health import AWAY_AFTER_MS
from manager.outbox.receivers.samples import sample_events
from manager.outbox.receivers.subscriber import AlarmSubscriber
from protocol.messages.alarm_receivers import ReceiverState

if TYPE_CHECKING:
    from manager.storage.base import EventLog
    from manager.storage.receiver_health import ReceiverHealth
    from protocol.messages.events import Event

EVENT = sample_events()[0]
SECRET = "https://hooks.example/very-secret"


class Channel:
    """Raises what it is told to, or takes everything."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def send(self, event: Event) -> Taken | Refusal:
        del event
        if self.error is not None:
            raise self.error
        return Taken()

    def close(self) -> None:
        """Nothing is open."""


class Log:
    """Keeps how receivers are."""

    def __init__(self) -> None:
        self.kept: dict[str, ReceiverHealth] = {}
        self.told: list[Event] = []

    async def health(self) -> dict[str, ReceiverHealth]:
        return dict(self.kept)

    async def keep_health(self, webhook: str, health: ReceiverHealth, told: Event | None = None) -> None:
        self.kept[webhook] = health
        self.told += [] if told is None else [told]


class Site:
    """A receiver, on a clock that a test moves."""

    def __init__(self, channel: Channel) -> None:
        self.log = Log()
        self.now_ms = 1000
        self.subscriber = AlarmSubscriber(
            "ops", channel, cast("EventLog", self.log), ("dev",), now_ms=lambda: self.now_ms, meter=Meter()
        )

    @property
    def health(self) -> ReceiverHealth:
        return self.log.kept[self.subscriber.name]


async def test_an_error_that_nobody_foresaw_is_a_refusal_and_the_receiver_away_by_and_by() -> None:
    """It is told as any other, by the error's class: its words may have a secret in them."""
    channel = Channel(LookupError(SECRET))
    site = Site(channel)
    await site.subscriber.begin()
    assert await site.subscriber.post(EVENT) == Refusal("unexpected error LookupError")
    assert site.health.state is ReceiverState.FAILING
    site.now_ms += AWAY_AFTER_MS
    await site.subscriber.post(EVENT)
    assert site.health.state is ReceiverState.AWAY
    (told,) = site.log.told
    assert told.alarm is not None
    assert told.alarm.subjects[0].causes == ("unexpected error LookupError",)
    channel.error = None
    assert await site.subscriber.post(EVENT) is None
    assert site.health.state is ReceiverState.DELIVERING
