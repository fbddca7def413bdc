"""The subscribers of the log that a receiver comes to: one, and one more for each of several addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from manager.clock import read_clocks
from manager.outbox.receivers.channel import HttpChannel, MailChannel
from manager.outbox.receivers.health_keeper import HealthKeeper
from manager.outbox.receivers.mail_subscriber import AddressSubscriber, MailSubscriber, WhileBehind
from manager.outbox.receivers.mailing import Mailing, name_of_address
from manager.outbox.receivers.sections import EmailReceiver
from manager.outbox.receivers.smtp import SmtpPoster
from manager.outbox.receivers.subscriber import PREFIX, AlarmSubscriber

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from manager.metrics.meter import Meter
    from manager.outbox.http_poster import HttpPoster
    from manager.outbox.receivers.channel import Channel
    from manager.outbox.receivers.file import DeclaredReceiver, DeclaredReceivers
    from manager.outbox.sender import Subscriber, WebhookRouting
    from manager.storage.base import EventLog


def channel_to(receiver: DeclaredReceiver, declared: DeclaredReceivers, poster: HttpPoster) -> Channel:
    """The way to `receiver`; whoever asks for it closes it."""
    section = receiver.section
    if isinstance(section, EmailReceiver):
        return _mail_channel(receiver, section, declared)
    return HttpChannel(receiver, declared.console_url, poster)


def _mail_channel(
    receiver: DeclaredReceiver, section: EmailReceiver, declared: DeclaredReceivers
) -> MailChannel:
    assert declared.smtp is not None  # noqa: S101 - for mypy: without it the file is refused
    assert declared.trust is not None  # noqa: S101 - as above
    poster = SmtpPoster(declared.smtp, declared.trust)
    return MailChannel(receiver, section, declared.smtp.sender, declared.console_url, poster)


def names_of(receiver: DeclaredReceiver) -> tuple[str, ...]:
    """By which it and its addresses are known in the database; of some of them there may be nothing."""
    name, section = PREFIX + receiver.name, receiver.section
    addresses = section.to if isinstance(section, EmailReceiver) else ()
    return name, *(name_of_address(name, each) for each in addresses)


@dataclass(frozen=True, slots=True)
class Subscribers:
    """Makes them.

    Attributes:
        declared: what the file says.
        poster: posts what is no mail.
        events: where positions and health are kept.
        routing: which manager tells whom.
        meter: counts what becomes of messages.
        closing: is given what is to be called when they have ended.
    """

    declared: DeclaredReceivers
    poster: HttpPoster
    events: EventLog
    routing: WebhookRouting
    meter: Meter
    closing: Callable[[Callable[[], None]], object]

    def of(self, receiver: DeclaredReceiver) -> Iterator[tuple[Subscriber, WebhookRouting]]:
        """Of one receiver, each with what says which manager tells it."""
        section = receiver.section
        if isinstance(section, EmailReceiver) and len(section.to) > 1:
            yield from self._of_addresses(receiver, section)
            return
        channel = channel_to(receiver, self.declared, self.poster)
        self.closing(channel.close)
        yield AlarmSubscriber(receiver.name, channel, self._keeper(receiver.name), self.meter), self.routing

    def _of_addresses(
        self, receiver: DeclaredReceiver, section: EmailReceiver
    ) -> Iterator[tuple[Subscriber, WebhookRouting]]:
        name = PREFIX + receiver.name
        mailing = Mailing(
            name,
            section.to,
            _mail_channel(receiver, section, self.declared),
            _mail_channel(receiver, section, self.declared),
            self.events,
            epochs=partial(self.routing.epochs, (name,)),
            now_ms=_now_ms,
        )
        self.closing(mailing.close)
        alone = {address: self._keeper(receiver.name, address) for address in section.to}
        together = MailSubscriber(receiver.name, mailing, self._keeper(receiver.name), self.meter, alone)
        yield together, self.routing
        for address, keeper in alone.items():
            routing = WhileBehind(name, address, mailing, self.routing)
            yield AddressSubscriber(address, together, mailing, keeper), routing

    def _keeper(self, receiver: str, address: str | None = None) -> HealthKeeper:
        """Of an address its receiver is told, too: it has others."""
        told_as = receiver if address is None else name_of_address(receiver, address)
        return HealthKeeper(
            PREFIX + told_as,
            told_as,
            self.events,
            tuple(each for each in self.declared.fallbacks if each != told_as),
            epochs=partial(self.routing.epochs, (PREFIX + receiver,)),
            now_ms=_now_ms,
        )


def _now_ms() -> int:
    return read_clocks().wall
