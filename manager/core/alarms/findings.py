"""What one pass over a group has found, rule by rule: what is to be told and stored together."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject, Severity

if TYPE_CHECKING:
    from manager.core.stored_rows import AlarmRow

SUBJECTS_TOLD: Final = 20
"""Of a notice, one by one; how many there are is told in any case."""


class Finding(Enum):
    """What has become of an alarm that is to be stored."""

    FIRES = "fires"
    REPEATS = "repeats"
    RESOLVES = "resolves"


@dataclass(slots=True)
class Batch:
    """Alarms of one rule of which the same is told; `rows` are as they are to be stored.

    `audible` is how many of them receivers are told of, `subjects` has the first of these.
    `stored` counts the rows that are stored already.
    """

    finding: Finding
    first: AlarmRow
    rows: list[AlarmRow] = field(default_factory=list)
    audible: int = 0
    subjects: list[AlarmSubject] = field(default_factory=list)
    stored: int = 0

    def notice(self) -> AlarmNotice | None:
        """What receivers are told; None if nothing."""
        if not self.audible:
            return None
        return AlarmNotice(
            rule=self.first.rule,
            kind=self.first.kind,
            severity=Severity(self.first.severity),
            receivers=self.first.receivers,
            subjects=tuple(self.subjects),
            count=self.audible,
            is_repeat=self.finding is Finding.REPEATS,
        )


class Findings:
    """Batches in the order in which the first alarm of each was found."""

    def __init__(self) -> None:
        self._batches: dict[tuple[object, ...], Batch] = {}

    def batch(self, finding: Finding, row: AlarmRow) -> Batch:
        """Where such a row belongs: with those that the same receivers are told the same of."""
        key = (finding, row.rule, row.severity, row.receivers)
        found = self._batches.get(key)
        if found is None:
            found = self._batches[key] = Batch(finding, row)
        return found

    def take(self) -> list[Batch]:
        """All of them."""
        return [*self._batches.values()]


def subject_of(row: AlarmRow, causes: tuple[str, ...] = ()) -> AlarmSubject:
    """What one alarm is about, as it is told."""
    return AlarmSubject(
        since_ms=row.since_ms,
        task=task_of(row.subject),
        member=member_of(row.subject),
        manager=manager_of(row.subject),
        worker=row.worker,
        value=row.value,
        threshold=row.threshold,
        causes=causes,
    )


TASK: Final = "task:"
MEMBER: Final = "member:"
MANAGER: Final = "manager:"
DATABASE: Final = "database"
"""There is one."""


def task_of(subject: str) -> str | None:
    """The task that an alarm is about, None if it is something else."""
    return subject.removeprefix(TASK) if subject.startswith(TASK) else None


def member_of(subject: str) -> str | None:
    """The worker that an alarm is about, None if it is something else."""
    return subject.removeprefix(MEMBER) if subject.startswith(MEMBER) else None


def manager_of(subject: str) -> str | None:
    """The manager that an alarm is about, None if it is something else."""
    return subject.removeprefix(MANAGER) if subject.startswith(MANAGER) else None
