"""Alarms one by one, for systems that keep incidents: each has a key, by which it is opened once, and closed.

A notice names the first of its alarms only. Those beyond are one incident together: nothing tells them apart.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject
    from protocol.messages.events import Event

LONGEST_KEY: Final = 255
"""PagerDuty's; Opsgenie takes 512 characters."""


class Incident(NamedTuple):
    """One alarm, or what was not named: `key` is the same when it is told again, and when it is over."""

    key: str
    event: Event


def incidents_of(event: Event) -> Iterator[Incident]:
    """What `event` tells of, one by one."""
    if event.alarm is None:
        yield Incident(_key("events pruned", str(event.id)), event)
        return
    for subject in event.alarm.subjects:
        key = _key(event.group, event.alarm.rule, *_names(subject))
        yield Incident(key, _narrowed(event, event.alarm, (subject,), 1))
    more = event.alarm.count - len(event.alarm.subjects)
    if more > 0:
        key = _key(event.group, event.alarm.rule, "and more")
        yield Incident(key, _narrowed(event, event.alarm, (), more))


def _names(subject: AlarmSubject) -> tuple[str | None, ...]:
    task, manager = subject.task, subject.manager
    return task and f"task {task}", subject.member, manager and f"manager {manager}"


def _narrowed(event: Event, notice: AlarmNotice, subjects: tuple[AlarmSubject, ...], count: int) -> Event:
    narrow = msgspec.structs.replace(notice, subjects=subjects, count=count)
    return msgspec.structs.replace(event, alarm=narrow)


def _key(*parts: str | None) -> str:
    key = "/".join(("sparkherd", *(part for part in parts if part)))
    return key if len(key) <= LONGEST_KEY else "sparkherd/" + hashlib.sha256(key.encode()).hexdigest()
