from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.outbox.receivers.file import DeclaredReceiver
from manager.outbox.receivers.incidents import incidents_of
from manager.outbox.receivers.payloads import requests_of
from manager.outbox.receivers.samples import sample_events
from manager.outbox.receivers.sections import KINDS, AnyReceiver
from manager.outbox.receivers.template import built_in_template
from manager.outbox.webhooks.secret import Secret
from protocol.messages.events import Event, EventType

FIRING, REPEAT, RESOLVED, BARE = sample_events()
PRUNED = Event(id=9, at_ms=60_000, type=EventType.EVENTS_PRUNED, after=4)
CONSOLE = "https://herd.example"
URL = "https://chat.example/hook"
NEEDS: dict[str, dict[str, Any]] = {
    "pagerduty": {"routing_key": "k"},
    "opsgenie": {"api_key": "k"},
    "email": {"to": ("a@b.example",)},
}


def receiver(kind: str, **more: Any) -> DeclaredReceiver:
    chosen: dict[str, Any] = {"kind": kind, **NEEDS.get(kind, {"url": URL}), **more}
    section: AnyReceiver = msgspec.convert(chosen, KINDS[kind])
    return DeclaredReceiver("ops", section, built_in_template(kind))


def bodies(kind: str, event: Event, **more: Any) -> list[dict[str, Any]]:
    return [msgspec.json.decode(each.body) for each in requests_of(receiver(kind, **more), event, CONSOLE, 1)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "email"])
@pytest.mark.parametrize("event", [FIRING, REPEAT, RESOLVED, BARE, PRUNED], ids=range(5))
def test_every_kind_can_be_told_of_everything(kind: str, event: Event) -> None:
    """As JSON, and where it was said to go."""
    for request in requests_of(receiver(kind), event, None, 1):
        assert isinstance(msgspec.json.decode(request.body), dict)
        assert request.url.scheme == "https"


def test_slack_gets_text_and_an_attachment_in_the_colour_of_the_severity() -> None:
    """The headline stands alone, as it is what a phone shows."""
    (body,) = bodies("slack", FIRING)
    assert body["text"] == "FIRING (critical): lag in shop, task orders"
    (attachment,) = body["attachments"]
    assert attachment["color"] == "#b71c1c"
    assert attachment["text"].startswith("*task orders* since 1970-01-01 00:00:00 UTC")
    assert bodies("slack", RESOLVED)[0]["attachments"][0]["color"] == "#2e7d32"


def test_mattermost_and_rocketchat_get_the_same_in_their_markup() -> None:
    """One star is italics in one of them."""
    assert bodies("mattermost", FIRING)[0]["attachments"][0]["text"].startswith("**task orders**")
    assert bodies("rocketchat", FIRING)[0]["attachments"][0]["text"].startswith("*task orders*")


def test_teams_gets_an_adaptive_card() -> None:
    """A flow takes nothing else."""
    (body,) = bodies("teams", FIRING)
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    title, text = attachment["content"]["body"]
    assert (title["text"], title["color"]) == ("FIRING (critical): lag in shop, task orders", "Attention")
    assert "\n\nValue 123, threshold 60\n\n" in text["text"]


def test_google_chat_gets_text() -> None:
    """Of at most 4,096 characters."""
    (body,) = bodies("google_chat", FIRING)
    assert body["text"].startswith("*FIRING (critical): lag in shop, task orders*\n*task orders* since")
    assert FIRING.alarm is not None
    many = msgspec.structs.replace(FIRING.alarm, subjects=FIRING.alarm.subjects * 1000, rule="r" * 1000)
    (body,) = bodies("google_chat", msgspec.structs.replace(FIRING, alarm=many))
    assert 4000 < len(body["text"]) <= 4096


def test_pagerduty_has_an_incident_for_each_alarm_and_one_for_the_rest() -> None:
    """Opened again under the same key it stays one; what is over is resolved by it."""
    (fired,), (resolved,) = bodies("pagerduty", FIRING), bodies("pagerduty", RESOLVED)
    assert fired["event_action"] == "trigger"
    assert fired["dedup_key"] == resolved["dedup_key"] == "sparkherd/shop/lag/task orders"
    assert resolved == {"routing_key": "k", "dedup_key": fired["dedup_key"], "event_action": "resolve"}
    assert fired["payload"]["severity"] == "critical"
    assert fired["payload"]["timestamp"] == "1970-01-01T00:01:00+00:00"
    keys = [body["dedup_key"].removeprefix("sparkherd/shop/lag") for body in bodies("pagerduty", REPEAT)]
    assert keys == ["/task orders", "/w1-5f1c", "", "/and more"]
    assert bodies("pagerduty", REPEAT)[3]["payload"]["summary"].endswith("lag in shop, 9 alarms")


def test_opsgenie_has_an_alert_for_each_alarm() -> None:
    """Closed by its alias, in a path where nothing of it is a separator."""
    (request,) = requests_of(receiver("opsgenie"), FIRING, None, 1)
    assert dict(request.headers) == {"Authorization": "GenieKey k"}
    body = msgspec.json.decode(request.body)
    assert (body["alias"], body["priority"]) == ("sparkherd/shop/lag/task orders", "P1")
    (closing,) = requests_of(receiver("opsgenie"), RESOLVED, None, 1)
    alias = "sparkherd%2Fshop%2Flag%2Ftask%20orders"
    assert str(closing.url) == f"https://api.opsgenie.com/v2/alerts/{alias}/close?identifierType=alias"


def test_a_key_that_is_too_long_is_shortened_and_stays_its_own() -> None:
    """Names have up to 249 characters each, keys 255."""
    long = [msgspec.structs.replace(FIRING, group="g" * 240 + end) for end in "ab"]
    keys = {incident.key for event in long for incident in incidents_of(event)}
    assert len(keys) == 2
    assert all(len(key) <= 255 for key in keys)


def test_a_webhook_gets_the_event_itself_signed() -> None:
    """As other webhooks do, with the time of sending."""
    (request,) = requests_of(receiver("webhook", secret="key"), FIRING, CONSOLE, 7)
    assert msgspec.json.decode(request.body, type=Event) == FIRING
    signature = "v1," + Secret(b"key").sign(b"1.7." + request.body)
    wanted = {"webhook-id": "1", "webhook-timestamp": "7", "webhook-signature": signature}
    assert dict(request.headers) == wanted
    (unsigned,) = requests_of(receiver("webhook"), FIRING, CONSOLE, 7)
    assert "webhook-signature" not in unsigned.headers
