from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from manager.outbox.receivers.markup import MARKUPS
from manager.outbox.receivers.samples import sample_events
from manager.outbox.receivers.template import TemplateError, built_in_template, own_template, render_html
from manager.outbox.receivers.view import duration, one_line
from protocol.alarm_hints import Subject, hint_for
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarm_notice import Severity
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from pathlib import Path

    from manager.outbox.receivers.template import Message

CONSOLE = "https://herd.example"
FIRING, REPEAT, RESOLVED, BARE = sample_events()
HINT = hint_for(AlarmKind.LAG_SECONDS, Subject("shop", "orders", "w1"))
NASTY = (
    "<!channel> <@U1> <users/all> @all [here](http://evil) <http://evil|here> "
    "</code><script>alert(1)</script>"
)


def shown(event: Event, kind: str = "email", console: str | None = CONSOLE) -> Message:
    return built_in_template(kind).render(event, console)


def with_cause(cause: str, rule: str = "lag") -> Event:
    assert FIRING.alarm is not None
    (subject,) = FIRING.alarm.subjects
    changed = msgspec.structs.replace(subject, causes=(cause,))
    return msgspec.structs.replace(
        FIRING, alarm=msgspec.structs.replace(FIRING.alarm, subjects=(changed,), rule=rule)
    )


@pytest.mark.parametrize("kind", MARKUPS)
def test_a_message_has_what_a_person_needs_at_night(kind: str) -> None:
    """What, since when, where, why, how bad, where to look, what to try."""
    told = " ".join(shown(FIRING, kind)) if kind != "html" else render_html(FIRING, CONSOLE) or ""
    for wanted in ("FIRING (critical): lag in shop", "orders", "since 1970-01-01 00:00:00 UTC (1 min 0 s)"):
        assert wanted in told
    for wanted in ("on worker w1", "Value 123, threshold 60", "OutOfMemoryError", "an earlier one"):
        assert wanted in told
    for wanted in (f"{CONSOLE}/groups/shop/tasks/orders", MARKUPS[kind].escape(HINT)):
        assert wanted in told


def test_the_headline_says_whether_it_begins_goes_on_or_is_over() -> None:
    """It is all that a phone shows."""
    assert shown(FIRING).headline == "FIRING (critical): lag in shop, task orders"
    assert shown(REPEAT).headline == "STILL FIRING (critical): lag in shop, 12 alarms"
    assert shown(RESOLVED).headline == "RESOLVED (critical): lag in shop, task orders"
    assert shown(BARE).headline == "FIRING (critical): lag"


@pytest.mark.parametrize("kind", MARKUPS)
def test_what_is_of_no_group_has_no_name(kind: str) -> None:
    """A receiver that is away, or a test: no bold nothing stands before the time."""
    told = (
        shown(BARE, kind).text if kind != "html" else (render_html(BARE, CONSOLE) or "").partition("<p>")[2]
    )
    assert told.startswith("Since 1970-01-01 00:00:00 UTC (1 min 0 s)")


def test_what_is_over_has_nothing_to_try_and_what_is_not_shown_is_counted() -> None:
    """Twelve alarms of which three are listed."""
    assert "What to try" not in shown(RESOLVED).text
    assert "... and 9 more" in shown(REPEAT).text


@pytest.mark.parametrize("kind", MARKUPS)
def test_without_a_console_there_are_no_links(kind: str) -> None:
    """Rather than ones that lead nowhere."""
    told = shown(REPEAT, kind, None).text if kind != "html" else render_html(REPEAT, None) or ""
    assert "console" not in told.replace(MARKUPS[kind].escape(HINT), "")


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("slack", "<!channel"),
        ("google_chat", "<users/all"),
        ("slack", "<http://evil|here>"),
        ("google_chat", "<http://evil|here>"),
        ("mattermost", "@all"),
        ("mattermost", "<!channel>"),
        ("mattermost", "<@U1>"),
        ("mattermost", "<http://evil|here>"),
        ("mattermost", "](http://evil)"),
        ("rocketchat", "@all"),
        ("rocketchat", "<http://evil|here>"),
        ("teams", "](http://evil)"),
    ],
)
def test_a_cause_neither_mentions_a_channel_nor_makes_a_link(kind: str, sign: str) -> None:
    """It is what somebody else's code says."""
    assert sign not in shown(with_cause(NASTY), kind).text
    assert sign in shown(with_cause(NASTY), "email").text  # that is what it would have been


def test_a_cause_is_no_html() -> None:
    """In a mail it is shown as it is."""
    page = render_html(with_cause(NASTY), CONSOLE)
    assert page is not None
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "condition",
    [
        *(f'kind == "{kind}"' for kind in (*AlarmKind, "receiver_away", "test")),
        *(f'severity == "{severity}"' for severity in Severity),
        'is_resolved and kind == "receiver_away"',
    ],
)
def test_a_template_is_tried_with_all_it_may_ask_for(tmp_path: Path, condition: str) -> None:
    """A mistake that waits for one kind, or one severity, is found at the start."""
    path = tmp_path / "own.txt"
    path.write_text(f"{{{{ rule }}}}\n{{% if {condition} %}}{{{{ vlaue }}}}{{% endif %}}")
    with pytest.raises(TemplateError, match="line 2: 'vlaue' is undefined"):
        own_template("slack", path)


def test_a_headline_is_one_line_whatever_is_in_it() -> None:
    """It becomes the header of a mail."""
    event = with_cause("x", rule="a\r\nBcc: x@y\u2028b\x00\x1b[31m")
    assert shown(event).headline.startswith("FIRING (critical): a Bcc: x@y b[31m in shop")
    assert one_line("a\x85b\u202ec") == "a bc"


def test_what_is_too_long_is_cut() -> None:
    """A system that refuses a message refuses all of it."""
    event = with_cause("x" * 100_000, rule="r" * 1000)
    assert len(shown(event).headline) == 250
    assert len(shown(event).text) < 2000
    many = msgspec.structs.replace(event.alarm, subjects=event.alarm.subjects * 1000)  # type: ignore[union-attr, type-var]  # it has one
    assert len(shown(msgspec.structs.replace(event, alarm=many), "slack").text) == 4000


def test_events_that_are_gone_are_told_of() -> None:
    """Alarms may have been among them."""
    message = shown(Event(id=900, at_ms=1, type=EventType.EVENTS_PRUNED, after=41))
    assert message.headline == "Alarms may have been missed"
    assert "42 to 900" in message.text


def test_a_template_of_one_s_own_that_fails_later_is_replaced(tmp_path: Path) -> None:
    """No sample has everything that may come, and the alarm is what matters."""
    path = tmp_path / "own.txt"
    rest = "{{ bold(kind) }}{% for cause in subjects[0].causes %} {{ cause }}{% endfor %}"
    path.write_text("{{ rule }}\n{% if rule == 'x' %}{{ nope }}{% endif %}" + rest)
    own = own_template("slack", path)
    assert own.render(with_cause("a & b"), None) == ("lag", "*lag_seconds* a &amp; b")
    assert own.render(with_cause("a", rule="x"), None).headline.startswith("FIRING (critical): x")


@pytest.mark.parametrize(
    ("ms", "told"),
    [(-5, "0 s"), (999, "0 s"), (59_000, "59 s"), (3_600_000, "1 h 0 min"), (90_061_000, "1 d 1 h")],
)
def test_durations_have_two_units(ms: int, told: str) -> None:
    """Nobody wants the seconds of a day."""
    assert duration(ms) == told
