"""What templates see of an event: every text and number that a message may have, ready to be shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from manager.outbox.receivers.samples import receiver_of
from protocol.alarm_hints import RECEIVER_AWAY, Subject, hint_for
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject
    from protocol.messages.events import Event

MOST_CAUSES: Final = 3
LONGEST_CAUSE: Final = 500
"""Characters: the status of a task has all of it."""


def view_of(event: Event, notice: AlarmNotice, console_url: str | None) -> dict[str, Any]:
    """The variables of a template; docs/alarm-receivers.md lists them.

    Args:
        event: what is told of; `notice` is its alarm.
        notice: the same alarm, which is there.
        console_url: where links lead to; None for a message without links.
    """
    subjects = [_subject(subject, event, console_url) for subject in notice.subjects]
    return {
        "status": status_of(event, notice),
        "is_resolved": event.type == EventType.ALARM_RESOLVED,
        "is_repeat": notice.is_repeat,
        "severity": str(notice.severity),
        "rule": one_line(notice.rule),
        "kind": one_line(notice.kind),
        "group": one_line(event.group or ""),
        "at": moment(event.at_ms),
        "count": notice.count,
        "more": max(notice.count - len(subjects), 0),
        "subjects": subjects,
        "try": one_line(hint_for(notice.kind, _about(event, notice))),
        "console": None if console_url is None else _link(console_url, event.group),
        "event_id": event.id,
    }


def _about(event: Event, notice: AlarmNotice) -> Subject:
    """The first of what is told of, which the commands of a hint name."""
    first = notice.subjects[0] if notice.subjects else None
    is_receiver = notice.kind == RECEIVER_AWAY
    return Subject(
        group=event.group,
        task=None if first is None else first.task,
        worker=None if first is None else first.member,
        receiver=receiver_of(notice.rule) if is_receiver else None,
    )


def status_of(event: Event, notice: AlarmNotice) -> str:
    """One or two words, in capitals as monitoring systems have them."""
    if event.type == EventType.ALARM_RESOLVED:
        return "RESOLVED"
    return "STILL FIRING" if notice.is_repeat else "FIRING"


def moment(at_ms: int) -> str:
    """A time (ms since 1970) in UTC, as readers may be anywhere."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def one_line(text: str) -> str:
    """`text` on one line: white space of any kind is one space, and nothing steers a terminal."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def duration(ms: int) -> str:
    """The two largest units of it."""
    left = max(ms, 0) // 1000
    parts: list[str] = []
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= seconds or parts:
            parts.append(f"{left // seconds} {unit}")
            left %= seconds
    return " ".join(parts[:2]) or "0 s"


def _subject(subject: AlarmSubject, event: Event, console_url: str | None) -> dict[str, Any]:
    what, name = _what(subject, event)
    return {
        "what": what,
        "name": one_line(name),
        "worker": one_line(subject.worker or ""),
        "since": moment(subject.since_ms),
        "lasted": duration(event.at_ms - subject.since_ms),
        "value": _number(subject.value),
        "threshold": _number(subject.threshold),
        "causes": [one_line(cause)[:LONGEST_CAUSE] for cause in subject.causes[:MOST_CAUSES]],
        "link": None if console_url is None else _link(console_url, event.group, *_place(subject)),
    }


def _what(subject: AlarmSubject, event: Event) -> tuple[str, str]:
    if subject.task:
        return "task", subject.task
    if subject.member:
        return "worker", subject.member
    return ("manager", subject.manager) if subject.manager else ("", event.group or "")


def _place(subject: AlarmSubject) -> Iterable[str]:
    if subject.task:
        return "tasks", subject.task
    return ("workers", subject.member) if subject.member else ()


def _link(console_url: str, group: str | None, *place: str) -> str:
    parts = () if group is None else ("groups", group, *place)
    return "/".join((console_url, *(quote(part, safe="") for part in parts)))


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.10g}"
