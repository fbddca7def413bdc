"""The way to one receiver, whichever it is: an event goes in, and whether it was taken comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from manager.background.supervision import tell_bug
from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.mail import mail_of
from manager.outbox.receivers.payloads import requests_of
from manager.outbox.receivers.recipients import told
from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from manager.outbox.http_poster import HttpPoster
    from manager.outbox.receivers.file import DeclaredReceiver
    from manager.outbox.receivers.sections import EmailReceiver
    from manager.outbox.receivers.smtp import Handed, SmtpPoster
    from protocol.messages.events import Event

T = TypeVar("T")

FINALS: Final = frozenset({400, 413, 422})
"""How chats and pagers say that a message is wrong; any other status may be mended on their side."""


class Taken(NamedTuple):
    """The event was taken; `note` says of whom it was not."""

    note: str | None = None


class Channel(Protocol):
    """Tells one receiver."""

    async def send(self, event: Event) -> Taken | Refusal | None:
        """Tell it of `event`, an alarm or that events were pruned; None if nobody is left to be told."""
        ...

    def close(self) -> None:
        """Cut what is going on."""
        ...


async def outcome_of(sending: Awaitable[T], receiver: str) -> T | Refusal:
    """What becomes of `sending` to `receiver`; an error that nobody foresaw is a refusal like others.

    Its class is told, and not its words, in which a URL or a password may be: they are in the log, which
    hides what it knows to be secret.

    Raises:
        StorageError: the database is away.
    """
    try:
        return await sending
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the receiver has not taken the message
        tell_bug("telling a receiver of alarms", error, receiver=receiver)
        return Refusal(f"unexpected error {type(error).__name__}")


class HttpChannel:
    """To what is posted to.

    Several requests of one event are sent in order. What was taken of them is not sent again, or a system
    that limits requests would never get to the last ones; what is refused for good is left out, and said.
    """

    def __init__(self, receiver: DeclaredReceiver, console_url: str | None, poster: HttpPoster) -> None:
        self._receiver = receiver
        self._console_url = console_url
        self._poster = poster
        self._finals = frozenset[int]() if receiver.section.kind == "webhook" else FINALS
        self._partly: _PartlyPosted | None = None

    async def send(self, event: Event) -> Taken | Refusal:
        """Post what `event` comes to, as far as that is not done."""
        so_far = self._partly
        if so_far is None or so_far.event_id != event.id:
            so_far = _PartlyPosted(event.id)
        now_s = int(self._poster.clock())
        requests = tuple(requests_of(self._receiver, event, self._console_url, now_s))
        for request in requests[so_far.done :]:
            refusal = await self._poster.post(request.url, request.body, request.headers, self._finals)
            if refusal is not None and not refusal.is_final:
                self._partly = so_far
                return refusal
            so_far = so_far.with_one(refusal)
        self._partly = None
        return so_far.outcome()

    def close(self) -> None:
        """The connections are the poster's."""


class _PartlyPosted(NamedTuple):
    """The requests of an event that are `done`; `refused` are those of them that are refused for good."""

    event_id: int
    done: int = 0
    refused: tuple[Refusal, ...] = ()

    def with_one(self, refusal: Refusal | None) -> _PartlyPosted:
        refused = self.refused if refusal is None else (*self.refused, refusal)
        return _PartlyPosted(self.event_id, self.done + 1, refused)

    def outcome(self) -> Taken | Refusal:
        """Of an event of which all requests are done."""
        if not self.refused:
            return Taken()
        if len(self.refused) == self.done:
            return self.refused[0]
        return Taken(f"{len(self.refused)} of {self.done} were refused: {self.refused[0].reason}")


class MailChannel:
    """To people.

    Who has got a mail does not get it again because others of the same receiver have not: while those are
    refused for now, only they are tried. Whoever is refused for good is left out, and that is said.
    """

    def __init__(
        self,
        receiver: DeclaredReceiver,
        section: EmailReceiver,
        sender: str,
        console_url: str | None,
        poster: SmtpPoster,
    ) -> None:
        self._receiver = receiver
        self._section = section
        self._sender = sender
        self._console_url = console_url
        self._poster = poster
        self._partly: _Partly | None = None

    async def hand(self, event: Event, to: Sequence[str]) -> Handed | Refusal:
        """Mail `event` to these of the addresses; what becomes of those that are refused is the caller's."""
        mail = mail_of(self._receiver, self._section, self._sender, event, self._console_url)
        return await self._poster.post(mail, to)

    async def send(self, event: Event) -> Taken | Refusal:
        """Mail `event` to those who have not got it."""
        so_far = self._partly if self._partly is not None and self._partly.event_id == event.id else None
        handed = await self.hand(event, self._section.to if so_far is None else so_far.left)
        if isinstance(handed, Refusal):
            return handed
        for_now = {each: why for each, why in handed.refused.items() if not why.is_final}
        for_good = {each: why for each, why in handed.refused.items() if why.is_final}
        for_good |= {} if so_far is None else so_far.refused
        if for_now:
            self._partly = _Partly(event.id, tuple(for_now), for_good)
            return Refusal(told(for_now))
        self._partly = None
        if len(for_good) == len(self._section.to):
            return Refusal(told(for_good), is_final=True)
        return Taken(told(for_good) if for_good else None)

    def close(self) -> None:
        """Cut what is going on."""
        self._poster.close()


class _Partly(NamedTuple):
    """A mail that some have got: who is `left`, and who is `refused` for good."""

    event_id: int
    left: tuple[str, ...]
    refused: dict[str, Refusal]
