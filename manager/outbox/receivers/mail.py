"""Mails of alarms. Pure: headers are made by the standard library, which refuses line breaks in them."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import TYPE_CHECKING

from manager.outbox.receivers.template import render_html

if TYPE_CHECKING:
    from manager.outbox.receivers.file import DeclaredReceiver
    from manager.outbox.receivers.sections import EmailReceiver
    from protocol.messages.events import Event


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
    mail = EmailMessage(policy=SMTP)
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
    """Of the event, by which a mailbox can tell a repeat; its time tells it from one of another database."""
    return f"<sparkherd.{event.id}.{event.at_ms}.{receiver[:64]}@{sender.rpartition('@')[2]}>"
