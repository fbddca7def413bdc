"""Telling receivers at once, from memory, beside the log of events: for while the database is away.

Every receiver is tried until it takes the message, or until the database is back and the log does the rest.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from manager.background.supervision import once
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import outcome_of

if TYPE_CHECKING:
    from manager.outbox.receivers.channel import Channel, Taken
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class Receivers(Protocol):
    """The receivers that this manager knows."""

    @property
    def version(self) -> int:
        """Another one with each reading of the file."""
        ...

    def open(self, name: str) -> Channel | None:
        """The way to one of them, which whoever asks for it closes; None if there is none of that name."""
        ...


class _Way:
    """To one receiver, as the file has it now, for one message: it is known who has got that."""

    def __init__(self, receivers: Receivers, name: str) -> None:
        self._receivers = receivers
        self._name = name
        self._version: int | None = None
        self._channel: Channel | None = None

    async def send(self, event: Event) -> Taken | Refusal | None:
        """Try to; None if there is no such receiver."""
        if self._version != self._receivers.version:
            self.close()
            self._version, self._channel = self._receivers.version, self._receivers.open(self._name)
        if self._channel is None:
            return None
        return await outcome_of(self._channel.send(event), self._name)

    def close(self) -> None:
        """Cut what is going on."""
        if self._channel is not None:
            self._channel.close()


class DirectMessages:
    """What this manager tells by itself."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}

    def tell(self, event: Event) -> None:
        """Begin to tell the receivers of an alarm; one that still waits for an earlier word gets this one."""
        notice = event.alarm
        for name in notice.receivers if notice is not None else ():
            assert notice is not None  # noqa: S101 - for mypy
            key = notice.rule, name
            if (before := self._sending.pop(key, None)) is not None:
                before.cancel()
            self._sending[key] = once("telling a receiver directly", partial(self._send, key, event))

    def untold(self, rule: str) -> tuple[str, ...]:
        """The receivers that have not taken the last word of that rule's alarm."""
        return tuple(name for of, name in self._sending if of == rule)

    def drop(self, rule: str) -> None:
        """Try these no more."""
        for key in [key for key in self._sending if key[0] == rule]:
            self._sending.pop(key).cancel()

    async def stop(self) -> None:
        """Give up what is under way."""
        tasks = [*self._sending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, key: tuple[str, str], event: Event) -> None:
        way = _Way(self._receivers, key[1])
        try:
            await self._until_taken(way, key, event)
        finally:
            way.close()
        self._sending.pop(key, None)

    async def _until_taken(self, way: _Way, key: tuple[str, str], event: Event) -> None:
        about = {"receiver": key[1], "rule": key[0]}
        pause_s = FIRST_PAUSE_S
        while isinstance(outcome := await way.send(event), Refusal):
            log.warning("a receiver did not take an alarm", **about, reason=outcome.reason)
            if outcome.is_final:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        log.info("told an alarm without the database", **about)
