"""The receivers of one manager: it tells those that are its own to tell, and lists and tries all of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Self

import structlog

from manager.clock import read_clocks
from manager.outbox.http_poster import HttpPoster
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import HttpChannel, MailChannel, outcome_of
from manager.outbox.receivers.file import read_receivers
from manager.outbox.receivers.health_keeper import HealthKeeper
from manager.outbox.receivers.payloads import trial_needs_an_end
from manager.outbox.receivers.samples import trial_event
from manager.outbox.receivers.sections import EmailReceiver
from manager.outbox.receivers.smtp import SmtpPoster
from manager.outbox.receivers.subscriber import PREFIX, AlarmSubscriber
from manager.outbox.sender import Sender
from manager.storage.base import StorageError
from manager.storage.receiver_health import ReceiverHealth
from protocol.errors import StartupError
from protocol.messages.alarm_receivers import (
    AlarmReceiver,
    AlarmReceiverListResponse,
    ReceiverTestResponse,
)

if TYPE_CHECKING:
    from manager.metrics.meter import Meter
    from manager.outbox.feed import Feed
    from manager.outbox.receivers.channel import Channel, Taken
    from manager.outbox.receivers.file import DeclaredReceiver, DeclaredReceivers
    from manager.outbox.sender import WebhookRouting
    from manager.storage.base import EventLog
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)


class AlarmReceivers:
    """Runs while its `async with` block does.

    Args:
        path: of the file that declares them; None for none.
        feed: what happens.
        events: where positions and health are kept.
        routing: which manager tells whom.
        meter: counts what becomes of messages.

    Raises:
        StartupError: the file is of no use.
    """

    def __init__(
        self, path: str | None, feed: Feed, events: EventLog, routing: WebhookRouting, meter: Meter
    ) -> None:
        self._path = path
        self._declared = read_receivers(path)
        self._feed = feed
        self._events = events
        self._routing = routing
        self._meter = meter
        self._running = AsyncExitStack()
        self._change = asyncio.Lock()
        self._poster: HttpPoster | None = None

    async def __aenter__(self) -> Self:
        self._poster = HttpPoster()
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._change:
            await self._running.aclose()
            if self._poster is not None:
                await self._poster.close()
                self._poster = None

    async def reload(self) -> None:
        """Go by what the file says now; one that is of no use leaves all as it was."""
        async with self._change:
            try:
                declared = await asyncio.to_thread(read_receivers, self._path)
            except StartupError as error:
                log.warning("alarm receivers cannot be read again; the old ones stay", why=str(error))
                return
            if self._poster is None:
                return
            await self._running.aclose()
            self._declared, self._running = declared, AsyncExitStack()
            await self._begin()
        if self._path is not None:
            log.info("alarm receivers read again", receivers=len(declared.receivers))

    async def listed(self) -> AlarmReceiverListResponse:
        """All of them, and how each is, whichever manager tells it; raises `StorageError`."""
        declared = self._declared.receivers
        health = await self._events.health() if declared else {}
        shown = [_shown(each, health.get(PREFIX + each.name, ReceiverHealth())) for each in declared]
        return AlarmReceiverListResponse(receivers=tuple(shown))

    async def test(self, name: str) -> ReceiverTestResponse | None:
        """Send a test message from here, beside all that waits; None if there is no such receiver."""
        receiver = self._receiver(name)
        if receiver is None:
            return None
        ends = (False, True) if trial_needs_an_end(receiver) else (False,)
        now_ms = read_clocks().wall
        outcome = await self._send(receiver, *(trial_event(name, now_ms, is_over=each) for each in ends))
        if isinstance(outcome, Refusal):
            return ReceiverTestResponse(delivered=False, reason=outcome.reason)
        return None if outcome is None else ReceiverTestResponse(delivered=True, reason=outcome.note)

    async def tell(self, name: str, event: Event) -> Taken | Refusal | None:
        """Send `event` from here, once, beside all that waits; None if there is no such receiver."""
        receiver = self._receiver(name)
        return None if receiver is None else await self._send(receiver, event)

    def _receiver(self, name: str) -> DeclaredReceiver | None:
        return next((each for each in self._declared.receivers if each.name == name), None)

    async def _send(self, receiver: DeclaredReceiver, *events: Event) -> Taken | Refusal | None:
        """One after the other, up to the first that is not taken; None if this manager is stopping."""
        if self._poster is None:
            return None
        channel = self._channel(receiver, self._declared, self._poster)
        outcome: Taken | Refusal | None = None
        try:
            for event in events:
                outcome = await outcome_of(channel.send(event), receiver.name)
                if isinstance(outcome, Refusal):
                    break
        finally:
            channel.close()
        return outcome

    @property
    def names(self) -> tuple[str, ...]:
        """Of all receivers."""
        return tuple(each.name for each in self._declared.receivers)

    async def _begin(self) -> None:
        poster = self._poster
        for receiver in self._declared.receivers if poster is not None else ():
            assert poster is not None  # noqa: S101 - for mypy
            channel = self._channel(receiver, self._declared, poster)
            self._running.callback(channel.close)
            subscriber = AlarmSubscriber(receiver.name, channel, self._keeper(receiver.name), self._meter)
            with suppress(StorageError):  # then it begins where the storage is well again
                await self._events.position(subscriber.name)
            sender = Sender(subscriber, self._feed, self._events, self._routing)
            self._running.push_async_callback(sender.start().stop)

    def _keeper(self, receiver: str) -> HealthKeeper:
        name = PREFIX + receiver
        fallbacks = tuple(each for each in self._declared.fallbacks if each != receiver)
        return HealthKeeper(
            name,
            receiver,
            self._events,
            fallbacks,
            epochs=partial(self._routing.epochs, (name,)),
            now_ms=lambda: read_clocks().wall,
        )

    def _channel(
        self, receiver: DeclaredReceiver, declared: DeclaredReceivers, poster: HttpPoster
    ) -> Channel:
        section = receiver.section
        if not isinstance(section, EmailReceiver) or declared.smtp is None or declared.trust is None:
            return HttpChannel(receiver, declared.console_url, poster)
        mail = SmtpPoster(declared.smtp, declared.trust)
        return MailChannel(receiver, section, declared.smtp.sender, declared.console_url, mail)


def _shown(receiver: DeclaredReceiver, health: ReceiverHealth) -> AlarmReceiver:
    return AlarmReceiver(
        name=receiver.name,
        kind=receiver.section.kind,
        fallback=receiver.section.fallback,
        state=health.state,
        since_ms=health.since_ms,
        last_error=health.last_error,
    )
