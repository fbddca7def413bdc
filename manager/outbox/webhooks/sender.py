"""The shell of one webhook: carries out what its `Delivery` says."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import structlog

from manager.background.supervision import Loop
from manager.clock import read_clocks
from manager.outbox.feed import LOOK_EVERY_S, events_after
from manager.outbox.webhooks.delivery import Delivery, Fetch, Pause, Post, Step
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from manager.outbox.feed import Feed
    from manager.outbox.webhooks.poster import Poster
    from manager.outbox.webhooks.webhook import Webhook
    from manager.storage.base import EventLog
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

PAUSE_S = 1.0
"""How long to leave alone what is another manager's to do, or a storage in trouble."""
LAST_SAVE_S = 2.0


class WebhookRouting(Protocol):
    """Which of several managers tells a webhook.

    That two think so for a while is allowed: what one has told the other repeats, and positions only grow.
    That none does is allowed for as long as nobody minds events coming late.
    """

    def is_mine(self, webhook: str) -> bool:
        """Whether it is this manager, at the moment."""
        ...


class Sender:
    """Tells one webhook everything, from its stored position on."""

    def __init__(
        self, webhook: Webhook, feed: Feed, events: EventLog, poster: Poster, routing: WebhookRouting
    ) -> None:
        self._webhook = webhook
        self._feed = feed
        self._events = events
        self._poster = poster
        self._routing = routing

    def start(self) -> Loop:
        """Begin; trouble with the database is waited out."""
        name = self._webhook.name
        return Loop(
            "telling a webhook", self._deliver, PAUSE_S, "webhook waits for the storage", webhook=name
        )

    async def _deliver(self) -> None:
        """As long as it is this manager's to do."""
        name = self._webhook.name
        if not self._routing.is_mine(name):
            return
        delivery = Delivery(await self._events.position(name), random.random)
        step = delivery.begin()
        try:
            while self._routing.is_mine(name):
                if step.save is not None:
                    await self._events.advance(name, step.save)
                step = await self._carry_out(delivery, step)
        finally:
            with suppress(StorageError, TimeoutError):
                async with asyncio.timeout(LAST_SAVE_S):
                    await self._events.advance(name, delivery.position)

    async def _carry_out(self, delivery: Delivery, step: Step) -> Step:
        match step.then:
            case Fetch(after):
                return delivery.fetched(await self._fetch(after))
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
        refusal = await self._poster.post(self._webhook, event)
        now = read_clocks().mono
        if refusal is None:
            if delivery.failures:
                log.info("webhook takes events again", webhook=self._webhook.name, event_id=event.id)
            return delivery.taken(now)
        step = delivery.refused(now, refusal.retry_after_ms)
        log.warning(
            "webhook did not take an event",
            webhook=self._webhook.name,
            event_id=event.id,
            reason=refusal.reason,
            failures=delivery.failures,
            retry_ms=step.then.ms if isinstance(step.then, Pause) else None,
        )
        return step
