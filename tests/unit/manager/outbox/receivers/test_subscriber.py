"""What a receiver of alarms makes of each outcome: what is told of it, kept and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manager.metrics.meter import Meter
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import Taken
from manager.outbox.receivers.health import AWAY_AFTER_MS
from manager.outbox.receivers.health_keeper import HealthKeeper
from manager.outbox.receivers.samples import sample_events
from manager.outbox.receivers.subscriber import PREFIX, AlarmSubscriber
from manager.storage.base import StaleEpochError
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.storage.base import EventLog
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
    """Keeps how receivers are, under the present epoch only."""

    def __init__(self) -> None:
        self.epoch = 1
        self.kept: dict[str, ReceiverHealth] = {}
        self.told: list[Event] = []

    def epochs(self) -> Mapping[int, int]:
        return {0: self.epoch}

    async def health(self) -> dict[str, ReceiverHealth]:
        return dict(self.kept)

    async def keep_health(
        self, webhook: str, health: ReceiverHealth, told: Event | None, fence: Mapping[int, int]
    ) -> None:
        if fence != self.epochs():
            raise StaleEpochError((0,))
        self.kept[webhook] = health
        self.told += [] if told is None else [told]


class Site:
    """A receiver, on a clock that a test moves."""

    def __init__(self, channel: Channel) -> None:
        self.log = Log()
        self.now_ms = 1000
        keeper = HealthKeeper(
            f"{PREFIX}ops",
            "ops",
            cast("EventLog", self.log),
            ("dev",),
            epochs=self.log.epochs,
            now_ms=lambda: self.now_ms,
        )
        self.subscriber = AlarmSubscriber("ops", channel, keeper, Meter())

    def health(self) -> ReceiverHealth:
        return self.log.kept[self.subscriber.name]

    def state(self) -> ReceiverState:
        return self.health().state


async def test_an_error_that_nobody_foresaw_is_a_refusal_and_the_receiver_away_by_and_by() -> None:
    """It is told as any other, by the error's class: its words may have a secret in them."""
    channel = Channel(LookupError(SECRET))
    site = Site(channel)
    await site.subscriber.begin()
    assert await site.subscriber.post(EVENT) == Refusal("unexpected error LookupError")
    assert site.state() is ReceiverState.FAILING
    site.now_ms += AWAY_AFTER_MS
    await site.subscriber.post(EVENT)
    assert site.state() is ReceiverState.AWAY
    (told,) = site.log.told
    assert told.alarm is not None
    assert told.alarm.subjects[0].causes == ("unexpected error LookupError",)
    channel.error = None
    assert await site.subscriber.post(EVENT) is None
    assert site.state() is ReceiverState.DELIVERING


async def test_the_late_word_of_a_manager_that_was_frozen_is_not_kept() -> None:
    """Another one has told the receiver meanwhile, and knows better; from then on it goes by that."""
    channel = Channel(OSError())
    site = Site(channel)
    await site.subscriber.begin()
    await site.subscriber.post(EVENT)
    site.now_ms += AWAY_AFTER_MS
    site.log.epoch = 2
    by_another = ReceiverHealth(ReceiverState.DELIVERING, site.now_ms)
    site.log.kept[site.subscriber.name] = by_another
    await site.subscriber.post(EVENT)
    assert (site.health(), site.log.told) == (by_another, [])
    await site.subscriber.post(EVENT)
    assert site.health() == ReceiverHealth(ReceiverState.FAILING, site.now_ms, "unexpected error OSError")


async def test_that_it_is_back_is_kept_under_the_next_epoch_too() -> None:
    """There may be no further message for days."""
    site = Site(Channel())
    site.log.kept[site.subscriber.name] = ReceiverHealth(ReceiverState.AWAY, 5, "HTTP 503")
    await site.subscriber.begin()
    site.log.epoch = 2
    await site.subscriber.post(EVENT)
    assert site.state() is ReceiverState.DELIVERING
    assert [event.type for event in site.log.told] == [EventType.ALARM_RESOLVED]
