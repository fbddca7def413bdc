"""The rules of alarms that count for a task, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.formatting import duration, figure, size

if TYPE_CHECKING:
    from protocol.messages.alarms import TaskAlarm, TaskAlarmsResponse

SECOND_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class TaskAlarmLine:
    """A rule: how it stands, and `value` beside `threshold`; `since_ms` is None while it does not hold."""

    rule: str
    kind: str
    severity: str
    state: str
    value: str
    threshold: str
    since_ms: int | None
    acknowledged_by: str | None
    silenced: bool
    receivers: str


@dataclass(frozen=True, slots=True)
class TaskAlarmsPanel:
    """The panel; `ringing` is how many fire."""

    lines: tuple[TaskAlarmLine, ...]

    @property
    def ringing(self) -> int:
        """How many of them fire."""
        return sum(line.state == "firing" for line in self.lines)


def task_alarms_panel(told: TaskAlarmsResponse) -> TaskAlarmsPanel | None:
    """What is shown of them; nothing of a task that no rule counts for."""
    lines = tuple(_line(alarm) for alarm in told.alarms)
    return TaskAlarmsPanel(lines) if lines else None


def _line(alarm: TaskAlarm) -> TaskAlarmLine:
    return TaskAlarmLine(
        rule=alarm.rule,
        kind=alarm.kind.replace("_", " "),
        severity=alarm.severity.value,
        state=alarm.state,
        value=alarm_figure(alarm.value, alarm.unit),
        threshold=alarm_figure(alarm.threshold, alarm.unit) if alarm.threshold is not None else "",
        since_ms=alarm.since_ms,
        acknowledged_by=alarm.acknowledged_by,
        silenced=alarm.silenced,
        receivers=", ".join(alarm.receivers) or "nobody",
    )


def alarm_figure(value: float | None, unit: str | None) -> str:
    """`12.3 k rows`, `5 min`, `1.5 GB`; without a unit it holds or does not."""
    if value is None:
        return "not known"
    match unit:
        case None:
            return "yes" if value else "no"
        case "s":
            return duration(value * SECOND_MS)
        case "bytes":
            return size(value)
    return f"{figure(value)} {unit}"
