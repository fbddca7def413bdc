"""What a receiver of alarms is told: one rule's alarms of a group, or of none, that began, go on or ended."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How much an alarm matters, in ascending order."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlarmSubject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one alarm is about.

    `task`, `member` or `manager` says whose alarm it is, none of them that it is the database's. `worker` is
    who owns that task. `value` and `threshold` are in the unit of the rule's kind; `since_ms` (since 1970) is
    when the condition began to hold. `causes` are the last ones that are known, the newest first.
    """

    since_ms: int
    task: str | None = None
    member: str | None = None
    manager: str | None = None
    worker: str | None = None
    value: float | None = None
    threshold: float | None = None
    causes: tuple[str, ...] = ()


class AlarmNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message to receivers.

    `count` alarms are told of at once, `subjects` has the first of them. One that `is_repeat` was told before
    and goes on.
    """

    rule: str
    kind: str
    severity: Severity
    receivers: tuple[str, ...]
    subjects: tuple[AlarmSubject, ...]
    count: int
    is_repeat: bool = False
