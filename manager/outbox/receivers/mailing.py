"""Mails of one receiver of several addresses, one of which may be behind (`recipients`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import Taken
from manager.outbox.receivers.health import after_refusal
from manager.outbox.receivers.recipients import Recipients, told
from manager.storage.base import NO_FENCE
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from manager.outbox.receivers.channel import MailChannel
    from manager.storage.base import EventLog
    from protocol.messages.events import Event

log = structlog.get_logger(__name__)


class Mailing:
    """The way to those who go along together, and to each that is behind.

    Args:
        name: by which the receiver is known in the database.
        addresses: all of them.
        together: sends mails to those who go along.
        alone: sends them to those who are behind, one at a time: servers limit connections.
        events: where it is kept who is behind.
        epochs: the slot that the right to tell the receiver goes by, and its epoch; raises `StaleEpochError`.
        now_ms: milliseconds since 1970.
    """

    def __init__(
        self,
        name: str,
        addresses: tuple[str, ...],
        together: MailChannel,
        alone: MailChannel,
        events: EventLog,
        *,
        epochs: Callable[[], Mapping[int, int]],
        now_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._recipients = Recipients(addresses)
        self._together = together
        self._alone = alone
        self._events = events
        self._epochs = epochs
        self._now_ms = now_ms
        self._fence = NO_FENCE
        self._one_at_a_time = asyncio.Lock()
        self._changing = asyncio.Lock()
        """Held while what is known of who is behind and what is stored of it may not be the same."""
        self._is_known = False
        """They are; not so where it is unknown whether a transaction was done."""

    def is_behind(self, address: str) -> bool:
        """Whether it is mailed alone."""
        return self._recipients.is_behind(address)

    async def begin(self) -> None:
        """Go on from what is stored, if that may not be what is known; raises `StorageError`."""
        async with self._changing:
            if not self._is_known or self._epochs() != self._fence:
                await self._read()

    def name_of(self, address: str) -> str:
        """By which an address is known in the database."""
        return name_of_address(self._name, address)

    async def send(self, event: Event) -> Taken | Refusal | None:
        """Mail `event` to those who go along; None if there is nobody.

        Raises:
            StorageError: it cannot be kept who is behind. Who has got the mail does not get it again.
        """
        async with self._changing:
            if not self._is_known:
                await self._read()
            to = self._recipients.begin(event.id)
        if not to:
            return None
        handed = await self._together.hand(event, to)
        if isinstance(handed, Refusal):
            return handed
        verdict = self._recipients.handed(event.id, to, handed.refused)
        if verdict.falls_behind:
            await self._part(event, verdict.falls_behind)
        return verdict.refusal or Taken(told(verdict.left_out) if verdict.left_out else None)

    async def send_alone(self, address: str, event: Event) -> Taken | Refusal:
        """Mail `event` to one that is behind."""
        async with self._one_at_a_time:
            handed = await self._alone.hand(event, (address,))
        if isinstance(handed, Refusal):
            return handed
        refused = handed.refused.get(address)
        return Taken() if refused is None else Refusal(told({address: refused}), is_final=refused.is_final)

    async def go_along(self, address: str, position: int, keep: Callable[[], Awaitable[None]]) -> bool:
        """Have an address that is as far as `position` go along again, if it misses nothing.

        Args:
            address: which one.
            position: the id of the last event that it has got, or was not to get.
            keep: stores that it is not behind any more; meanwhile no mail to the others is begun.
        """
        async with self._changing:
            if not self._recipients.has_all(position):
                return False
            self._recipients.has_had(address, position)
            self._is_known = False
            await keep()
            self._recipients.go_along(address)
            self._is_known = True
        log.info("an address goes along with the others again", address=self.name_of(address))
        return True

    def close(self) -> None:
        """Cut what is going on."""
        self._together.close()
        self._alone.close()

    async def _part(self, event: Event, refused: Mapping[str, Refusal]) -> None:
        """Those who were refused go their own way from before `event`, the others from after it."""
        reasons = {each: told({each: why}) for each, why in refused.items()}
        now_ms = self._now_ms()
        behind = {
            self.name_of(each): after_refusal(ReceiverHealth(), now_ms, why) for each, why in reasons.items()
        }
        async with self._changing:
            self._is_known = False
            await self._events.part(self._name, event.id, behind, self._fence)
            self._recipients.fall_behind(reasons)
            self._is_known = True
        log.warning("addresses are behind", subscriber=self._name, event_id=event.id, reasons=reasons)

    async def _read(self) -> None:
        """Who is behind, as it is stored."""
        self._is_known = False
        self._fence = self._epochs()  # first: what is read under an epoch may be written under it
        known = await self._events.health()
        position = await self._events.position(self._name)
        addresses = self._recipients.addresses
        behind = [each for each in addresses if _is_behind(known.get(self.name_of(each)))]
        self._recipients.resume(position, behind)
        self._is_known = True


def name_of_address(receiver: str, address: str) -> str:
    """By which an address of `receiver` is known; names of receivers have no slash."""
    return f"{receiver}/{address}"


def _is_behind(health: ReceiverHealth | None) -> bool:
    """Only of one that was behind there is anything; one whose alarm was taken back is still behind."""
    return health is not None and health.state is not ReceiverState.DELIVERING
