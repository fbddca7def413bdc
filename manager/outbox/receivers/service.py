"""The receivers of one manager: it tells those that are its own to tell, and lists and tries all of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final, Self

import structlog

from manager.background.supervision import Loop
from manager.clock import read_clocks
from manager.outbox.http_poster import HttpPoster
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import outcome_of
from manager.outbox.receivers.departed import LOOK_EVERY_S, Departed
from manager.outbox.receivers.file import read_receivers
from manager.outbox.receivers.payloads import trial_needs_an_end
from manager.outbox.receivers.samples import trial_event
from manager.outbox.receivers.subscriber import PREFIX
from manager.outbox.receivers.subscribers import Subscribers, channel_to, names_of
from manager.outbox.sender import Sender
from manager.storage.base import StorageError
from manager.storage.receiver_health import ReceiverHealth
from protocol.errors import StartupError
from protocol.messages.alarm_receivers import (
    AlarmReceiver,
    AlarmReceiverListResponse,
    ReceiverState,
    ReceiverTestResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manager.metrics.meter import Meter
    from manager.outbox.feed import Feed
    from manager.outbox.receivers.channel import Channel, Taken
    from manager.outbox.receivers.file import DeclaredReceiver
    from manager.outbox.sender import WebhookRouting
    from manager.storage.base import EventLog
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

_WORSE: Final = (ReceiverState.NEW, ReceiverState.DELIVERING, ReceiverState.FAILING, ReceiverState.AWAY)
"""What is shown of a receiver of which one address is so, and another one so: the later one."""


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
        self.version = 0
        """Another one with each reading of the file."""
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
            self.version += 1
            await self._begin()
        if self._path is not None:
            log.info("alarm receivers read again", receivers=len(declared.receivers))

    async def listed(self) -> AlarmReceiverListResponse:
        """All of them, and how each is, whichever manager tells it; raises `StorageError`."""
        declared = self._declared.receivers
        health = await self._events.health() if declared else {}
        shown = [_shown(each, _health_of(each, health)) for each in declared]
        return AlarmReceiverListResponse(receivers=tuple(shown))

    async def test(self, name: str) -> ReceiverTestResponse | None:
        """Send a test message from here, beside all that waits; None if there is no such receiver."""
        receiver, channel = self._receiver(name), self.open(name)
        if receiver is None or channel is None:
            return None
        ends = (False, True) if trial_needs_an_end(receiver) else (False,)
        now_ms = read_clocks().wall
        try:
            outcome = await _sent(channel, name, [trial_event(name, now_ms, is_over=each) for each in ends])
        finally:
            channel.close()
        if isinstance(outcome, Refusal):
            return ReceiverTestResponse(delivered=False, reason=outcome.reason)
        return ReceiverTestResponse(delivered=True, reason=None if outcome is None else outcome.note)

    def open(self, name: str) -> Channel | None:
        """The way from here to one of them, beside all that waits, which whoever asks for it closes.

        None if there is no such receiver, or this manager is stopping.
        """
        receiver = self._receiver(name)
        if receiver is None or self._poster is None:
            return None
        return channel_to(receiver, self._declared, self._poster)

    def _receiver(self, name: str) -> DeclaredReceiver | None:
        return next((each for each in self._declared.receivers if each.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all receivers."""
        return tuple(each.name for each in self._declared.receivers)

    async def _begin(self) -> None:
        poster = self._poster
        if poster is None:
            return
        subscribers = Subscribers(
            self._declared, poster, self._events, self._routing, self._meter, self._running.callback
        )
        for receiver in self._declared.receivers:
            with suppress(StorageError):  # then it begins where the storage is well again
                await self._events.position(PREFIX + receiver.name)
            for subscriber, routing in subscribers.of(receiver):
                sender = Sender(subscriber, self._feed, self._events, routing)
                self._running.push_async_callback(sender.start().stop)
        self._running.push_async_callback(self._look_for_departed().stop)

    def _look_for_departed(self) -> Loop:
        known = [name for receiver in self._declared.receivers for name in names_of(receiver)]
        departed = Departed(known, self._declared.fallbacks, self._events, self._routing)
        return Loop(
            "looking for receivers of alarms that are no more",
            departed.look,
            LOOK_EVERY_S,
            "it cannot be looked which receivers of alarms are no more",
        )


async def _sent(channel: Channel, receiver: str, events: Sequence[Event]) -> Taken | Refusal | None:
    """One after the other, up to the first that is not taken."""
    outcome: Taken | Refusal | None = None
    for event in events:
        outcome = await outcome_of(channel.send(event), receiver)
        if isinstance(outcome, Refusal):
            break
    return outcome


def _health_of(receiver: DeclaredReceiver, known: Mapping[str, ReceiverHealth]) -> ReceiverHealth:
    """Of the worst of it: all of it, or one of several addresses."""
    healths = [known[name] for name in names_of(receiver) if name in known]
    return max(healths, key=lambda each: _WORSE.index(each.state), default=ReceiverHealth())


def _shown(receiver: DeclaredReceiver, health: ReceiverHealth) -> AlarmReceiver:
    return AlarmReceiver(
        name=receiver.name,
        kind=receiver.section.kind,
        fallback=receiver.section.fallback,
        state=health.state,
        since_ms=health.since_ms,
        last_error=health.last_error,
    )
