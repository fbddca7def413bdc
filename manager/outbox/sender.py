"""The shell of one subscriber of the log: carries out what its `Delivery` says."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import structlog

from manager.background.supervision import Loop
from manager.clock import read_clocks
from manager.outbox.delivery import Delivery, Fetch, Pause, Post, Step
from manager.outbox.feed import LOOK_EVERY_S, events_after
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manager.outbox.feed import Feed
    from manager.outbox.outcomes import Refusal
    from manager.storage.base import EventLog
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

PAUSE_S = 1.0
"""How long to leave alone what is another manager's to do, or a storage in trouble."""
LAST_SAVE_S = 2.0


class Subscriber(Protocol):
    """Whoever is told of events, each once at least, in order."""

    @property
    def name(self) -> str:
        """What tells it from others in the database, and by which the manager is found that tells it."""
        ...

    @property
    def about(self) -> Mapping[str, str]:
        """What the log says of it; no secrets."""
        ...

    @property
    def longest_pause_ms(self) -> int | None:
        """Between two tries; None for the usual one."""
        ...

    def wants(self, event: Event) -> bool:
        """Whether it is to be told of an event."""
        ...

    async def begin(self) -> None:
        """From now on this manager tells it; raises `StorageError`."""
        ...

    async def post(self, event: Event) -> Refusal | None:
        """Tell it; None when the event was taken."""
        ...

    async def caught_up(self, position: int) -> None:
        """It has been told all that there is, up to the event `position`; raises `StorageError`."""
        ...

    def gave_up(self, event: Event) -> None:
        """It will never take `event`, and is not told of it any more."""
        ...

    def end(self) -> None:
        """This manager does not tell it any more."""
        ...


class WebhookRouting(Protocol):
    """Which of several managers tells a subscriber.

    That two think so for a while is allowed: what one has told the other repeats, and positions only grow.
    That none does is allowed for as long as nobody minds events coming late.
    """

    def is_mine(self, webhook: str) -> bool:
        """Whether it is this manager, at the moment."""
        ...

    def epochs(self, groups: Iterable[str], /) -> Mapping[int, int]:
        """The slots that this goes by, with their epochs: what is written under them is of who has them.

        Raises:
            StaleEpochError: another manager has one of them.
        """
        ...


class Sender:
    """Tells one subscriber everything it wants to know, from its stored position on."""

    def __init__(self, subscriber: Subscriber, feed: Feed, events: EventLog, routing: WebhookRouting) -> None:
        self._subscriber = subscriber
        self._feed = feed
        self._events = events
        self._routing = routing

    def start(self) -> Loop:
        """Begin; trouble with the database is waited out."""
        return Loop(
            f"telling {self._subscriber.name}",
            self._deliver,
            PAUSE_S,
            "events cannot be told; the storage is waited for",
            **self._subscriber.about,
        )

    async def _deliver(self) -> None:
        """As long as it is this manager's to do."""
        name = self._subscriber.name
        if not self._routing.is_mine(name):
            return
        delivery = await self._delivery()
        step = delivery.begin()
        try:
            while self._routing.is_mine(name):
                if step.save is not None:
                    await self._events.advance(name, step.save)
                step = await self._carry_out(delivery, step)
        finally:
            self._subscriber.end()
            with suppress(StorageError, TimeoutError):
                async with asyncio.timeout(LAST_SAVE_S):
                    await self._events.advance(name, delivery.position)

    async def _delivery(self) -> Delivery:
        subscriber = self._subscriber
        position = await self._events.position(subscriber.name)
        await subscriber.begin()
        return Delivery(position, random.random, subscriber.wants, subscriber.longest_pause_ms)

    async def _carry_out(self, delivery: Delivery, step: Step) -> Step:
        match step.then:
            case Fetch(after):
                step = delivery.fetched(await self._fetch(after), read_clocks().mono)
                if isinstance(step.then, Fetch):
                    await self._subscriber.caught_up(step.then.after)
                return step
            case Post(event):
                return await self._post(delivery, event)
            case Pause(ms):
                await asyncio.sleep(ms / 1000)
                return delivery.paused()

    async def _fetch(self, after: int) -> tuple[Event, ...]:
        """What there is, or, if that is nothing, nothing after a while."""
        version = self._feed.version
        page = await self._feed.read(after)
        if not page.events and page.pruned_through <= after:
            await self._feed.wait_for_change(version, LOOK_EVERY_S)
        return events_after(page, after)

    async def _post(self, delivery: Delivery, event: Event) -> Step:
        refusal = await self._subscriber.post(event)
        now = read_clocks().mono
        if refusal is None:
            if delivery.failures:
                log.info("events are taken again", **self._subscriber.about, event_id=event.id)
            return delivery.taken(now)
        step = delivery.refused(now, refusal.retry_after_ms, is_final=refusal.is_final)
        self._tell(event, refusal, delivery, step)
        return step

    def _tell(self, event: Event, refusal: Refusal, delivery: Delivery, step: Step) -> None:
        about = {**self._subscriber.about, "event_id": event.id, "reason": refusal.reason}
        if isinstance(step.then, Pause):
            log.warning("an event was not taken", **about, failures=delivery.failures, retry_ms=step.then.ms)
        else:
            log.error("an event is given up: it would never be taken", **about)
            self._subscriber.gave_up(event)
