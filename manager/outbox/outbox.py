"""Runs beside the groups: prunes the event log, sends webhooks, tells of alarms."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Self

import structlog

from manager.clock import read_clocks
from manager.metrics.meter import Meter
from manager.outbox.http_poster import HttpPoster
from manager.outbox.receivers.service import AlarmReceivers
from manager.outbox.retention import Retention
from manager.outbox.sender import Sender
from manager.outbox.webhooks.subscriber import WebhookSubscriber
from manager.outbox.webhooks.webhook import webhooks_of
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from manager.background.supervision import Loop
    from manager.outbox.feed import Feed
    from manager.outbox.sender import WebhookRouting
    from manager.outbox.webhooks.webhook import Webhook
    from manager.settings import ManagerSettings
    from manager.storage.base import EventLog

log = structlog.get_logger(__name__)


class Outbox:
    """Runs while its `async with` block does.

    Raises:
        StartupError: a webhook, the secret of one, or the file of alarm receivers cannot be used.
    """

    def __init__(
        self,
        feed: Feed,
        events: EventLog,
        settings: ManagerSettings,
        routing: WebhookRouting,
        meter: Meter | None = None,
    ) -> None:
        self._webhooks = webhooks_of(settings.webhook, settings.webhook_secret)
        self.receivers = AlarmReceivers(settings.alarm_receivers, feed, events, routing, meter or Meter())
        self._retention = Retention(
            events, settings.event_retention_ms, settings.event_retention_count, read_clocks
        )
        self._feed = feed
        self._events = events
        self._routing = routing
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._keep(self._retention.start())
        if self._webhooks:
            poster = HttpPoster()
            self._stack.push_async_callback(poster.close)
            for webhook in self._webhooks:
                await self._subscribe(webhook)
                subscriber = WebhookSubscriber(webhook, poster)
                self._keep(Sender(subscriber, self._feed, self._events, self._routing).start())
        await self._stack.enter_async_context(self.receivers)
        return self

    async def _subscribe(self, webhook: Webhook) -> None:
        """A new webhook is told everything from here on."""
        with suppress(StorageError):  # then it begins where the storage is well again
            position = await self._events.position(webhook.name)
            is_signed = webhook.secret is not None
            log.info("webhook is told what happens", webhook=webhook.name, after=position, signed=is_signed)

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _keep(self, loop: Loop) -> None:
        self._stack.push_async_callback(loop.stop)
