"""Requests as each system wants them. Pure: what is sent is data, so no text can break out of its JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from yarl import URL

from manager.outbox.http_poster import signed
from manager.outbox.receivers.incidents import incidents_of
from manager.outbox.receivers.sections import (
    ChatReceiver,
    OpsgenieReceiver,
    PagerDutyReceiver,
    WebhookReceiver,
)
from manager.outbox.receivers.template import cut
from manager.outbox.webhooks.secret import Secret, key_of
from protocol.messages.alarm_notice import Severity
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.outbox.receivers.file import DeclaredReceiver
    from manager.outbox.receivers.incidents import Incident
    from manager.outbox.receivers.template import Message
    from protocol.messages.events import Event

COLORS: Final = {Severity.INFO: "#1565c0", Severity.WARNING: "#f9a825", Severity.CRITICAL: "#b71c1c"}
RESOLVED_COLOR: Final = "#2e7d32"
TEAMS_COLORS: Final = {Severity.INFO: "Accent", Severity.WARNING: "Warning", Severity.CRITICAL: "Attention"}
OPSGENIE_PRIORITIES: Final = {Severity.INFO: "P5", Severity.WARNING: "P3", Severity.CRITICAL: "P1"}
OPSGENIE_MESSAGE: Final = 130
"""Characters of an alert's message; its description has the rest."""

_encode = msgspec.json.Encoder().encode


class HttpRequest(NamedTuple):
    """What is posted where; the URL and the headers may be secrets."""

    url: URL
    body: bytes
    headers: Mapping[str, str]


def requests_of(
    receiver: DeclaredReceiver, event: Event, console_url: str | None, now_s: int
) -> tuple[HttpRequest, ...]:
    """What to send to tell `receiver` of `event`, in order; nothing for kinds that are not told by HTTP.

    Args:
        receiver: who is told.
        event: an alarm, or that events were pruned.
        console_url: where links lead to.
        now_s: seconds since 1970, for the signature.
    """
    match receiver.section:
        case WebhookReceiver() as section:
            return (_signed(section, event, now_s),)
        case ChatReceiver() as section:
            body = chat_body(section.kind, event, receiver.template.render(event, console_url))
            return (_request(section.url, body),)
        case PagerDutyReceiver() as section:
            incidents = [*incidents_of(event)]
            return tuple(_pagerduty(section, receiver, each, console_url) for each in incidents)
        case OpsgenieReceiver() as section:
            incidents = [*incidents_of(event)]
            return tuple(_opsgenie(section, receiver, each, console_url) for each in incidents)
        case _:
            return ()


def chat_body(kind: str, event: Event, message: Message) -> dict[str, Any]:
    """A message in a channel, with a bar in the colour of its severity where there are such."""
    if kind == "google_chat":
        return {"text": f"*{message.headline}*\n{message.text}"}
    if kind == "teams":
        return _adaptive_card(event, message)
    attachment: dict[str, Any] = {"color": _color(event), "text": message.text}
    if kind == "slack":
        attachment |= {"mrkdwn_in": ["text"], "fallback": message.headline}
    return {"text": message.headline, "attachments": [attachment]}


def _adaptive_card(event: Event, message: Message) -> dict[str, Any]:
    """For a flow "when a Teams webhook request is received"."""
    color = "Good" if _is_resolved(event) else TEAMS_COLORS[_severity(event)]
    lines = message.text.replace("\n", "\n\n")  # one line break is a space there
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {
                "type": "TextBlock",
                "text": message.headline,
                "weight": "Bolder",
                "size": "Medium",
                "color": color,
                "wrap": True,
            },
            {"type": "TextBlock", "text": lines, "wrap": True},
        ],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _signed(section: WebhookReceiver, event: Event, now_s: int) -> HttpRequest:
    body = _encode(event)
    secret = None if section.secret is None else Secret(key_of(section.secret.encode()))
    return HttpRequest(URL(section.url), body, signed(event.id, now_s, body, secret))


def _request(url: str, body: object, **headers: str) -> HttpRequest:
    return HttpRequest(URL(url), _encode(body), headers)


def _pagerduty(
    section: PagerDutyReceiver, receiver: DeclaredReceiver, incident: Incident, console_url: str | None
) -> HttpRequest:
    """Events API v2; what is over needs no more than the key."""
    start = {"routing_key": section.routing_key, "dedup_key": incident.key}
    if _is_resolved(incident.event):
        return _request(section.url, {**start, "event_action": "resolve"})
    message = receiver.template.render(incident.event, console_url)
    event = incident.event
    payload = {
        "summary": message.headline,
        "source": f"sparkherd {event.group}" if event.group else "sparkherd",
        "severity": str(_severity(event)),
        "timestamp": datetime.fromtimestamp(event.at_ms / 1000, UTC).isoformat(),
        "class": event.alarm.kind if event.alarm else "events_pruned",
        "custom_details": {"message": message.text},
    }
    link = {} if console_url is None else {"client_url": console_url}
    return _request(
        section.url, {**start, "event_action": "trigger", "client": "sparkherd", **link, "payload": payload}
    )


def _opsgenie(
    section: OpsgenieReceiver, receiver: DeclaredReceiver, incident: Incident, console_url: str | None
) -> HttpRequest:
    """The Alert API: one alias is one open alert."""
    authorization = {"Authorization": f"GenieKey {section.api_key}"}
    if _is_resolved(incident.event):
        url = f"{section.url.rstrip('/')}/{quote(incident.key, safe='')}/close?identifierType=alias"
        return HttpRequest(URL(url, encoded=True), _encode({"source": "sparkherd"}), authorization)
    message = receiver.template.render(incident.event, console_url)
    body = {
        "message": cut(message.headline, OPSGENIE_MESSAGE),
        "alias": incident.key,
        "description": f"{message.headline}\n\n{message.text}",
        "priority": OPSGENIE_PRIORITIES[_severity(incident.event)],
        "source": "sparkherd",
        "tags": ["sparkherd"],
    }
    return HttpRequest(URL(section.url), _encode(body), authorization)


def trial_needs_an_end(receiver: DeclaredReceiver) -> bool:
    """Whether a test opens something that has to be closed."""
    return isinstance(receiver.section, PagerDutyReceiver | OpsgenieReceiver)


def _is_resolved(event: Event) -> bool:
    return event.type == EventType.ALARM_RESOLVED


def _severity(event: Event) -> Severity:
    """That alarms may have been missed is a warning."""
    return Severity.WARNING if event.alarm is None else event.alarm.severity


def _color(event: Event) -> str:
    return RESOLVED_COLOR if _is_resolved(event) else COLORS[_severity(event)]
