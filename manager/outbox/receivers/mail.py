"""Mails of alarms. Pure: headers are made by the standard library, which refuses line breaks in them."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from manager.outbox.receivers.template import render_html
from protocol.alarm_kinds import TRAITS, About

if TYPE_CHECKING:
    from manager.outbox.receivers.file import DeclaredReceiver
    from manager.outbox.receivers.sections import EmailReceiver
    from protocol.messages.events import Event


SEVEN_BITS: Final = SMTP.clone(cte_type="7bit")
"""As servers that do not offer 8BITMIME take it (RFC 6152): what is not ASCII is encoded."""
TOGETHER_MS: Final = 600_000
OF_DATABASE: Final = frozenset(kind.value for kind, each in TRAITS.items() if each.about is About.DATABASE)


def mail_of(
    receiver: DeclaredReceiver, section: EmailReceiver, sender: str, event: Event, console_url: str | None
) -> EmailMessage:
    """The mail that tells `receiver` of `event`: the same one each time, down to its Message-ID.

    Args:
        receiver: who gets it, and its template.
        section: its addresses.
        sender: whom it is from.
        event: an alarm, or that events were pruned.
        console_url: where links lead to.
    """
    message = receiver.template.render(event, console_url)
    mail = EmailMessage(policy=SEVEN_BITS)
    mail["From"] = sender
    mail["To"] = ", ".join(section.to)
    mail["Subject"] = message.headline
    mail["Date"] = formatdate(event.at_ms / 1000)
    mail["Message-ID"] = message_id(receiver.name, sender, event)
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: whoever is on holiday does not answer
    mail.set_content(message.text or message.headline)
    html = render_html(event, console_url) if section.template is None else None
    if html is not None:
        mail.add_alternative(html, subtype="html")
    return mail


def message_id(receiver: str, sender: str, event: Event) -> str:
    """Of the event, by which a mailbox can tell a repeat; its time tells it from one of another database.

    What managers tell by themselves has no number: what several of them say of one rule within a while, when
    the database goes away, is one mail.
    """
    number = f"{event.id}.{event.at_ms}"
    if event.id == 0 and event.alarm is not None and event.alarm.kind in OF_DATABASE:
        told = "again" if event.alarm.is_repeat else "direct"
        number = f"{told}.{event.at_ms // TOGETHER_MS}.{event.alarm.rule[:64]}"
    return f"<sparkherd.{number}.{receiver[:64]}@{sender.rpartition('@')[2]}>"
