"""The rules that count for a task, and how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.commands import GetTaskAlarms
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarms import Silence, TaskAlarm
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, behind, rule
from tests.unit.manager.core.alarms.watched import Watched

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench

LAG = rule(threshold=100, for_ms=MINUTE, receivers=("ops",))
OTHER = rule(AlarmKind.FAILED, tasks="other")
FAILED = rule(AlarmKind.FAILED)


def shown(group: Bench, task: str = "t") -> list[TaskAlarm]:
    """What is told of a task."""
    return list(group.ask(GetTaskAlarms(task=task)).answer.alarms)


def test_each_rule_is_told_with_what_it_looks_at_now() -> None:
    """In the order of the rules; one that does not fit, or was replaced, is not among them."""
    group = Watched()
    group.use(FAILED, LAG, OTHER)
    group.begin("t")
    assert [(each.rule, each.state, each.value, each.unit) for each in shown(group)] == [
        ("failed", "ok", 0.0, None),
        ("lag_rows", "ok", None, "rows"),
    ]
    group.runs("t", lag=behind(500))
    assert [each.value for each in shown(group)] == [0.0, 500.0]


def test_one_that_holds_is_pending_and_fires_later() -> None:
    """Since when is told, by the clock on the wall."""
    group = Watched()
    silence = Silence(id="1", ends_at_ms=WALL * 2, reason="r", by="b", created_at_ms=WALL)
    group.use(LAG, silences=(silence,))
    group.begin("t")
    group.runs("t", lag=behind(500))
    group.look()
    (pending,) = shown(group)
    assert (pending.state, pending.silenced) == ("pending", True)
    group.look(2 * MINUTE)
    (firing,) = shown(group)
    assert (firing.state, firing.since_ms) == ("firing", pending.since_ms)


def test_looking_changes_nothing() -> None:
    """Whoever reloads a page must not move the beginning of a silence, or of a window."""
    group = Watched()
    group.use(rule(AlarmKind.QUARANTINE, threshold=1), rule(AlarmKind.SILENT, threshold=3))
    group.begin("t")
    group.look()
    before = repr(group.group.alarms.tasks)
    group.runs("t", metrics={"quarantined": 5, "total_rows": 7})
    shown(group)
    assert repr(group.group.alarms.tasks) == before


def test_a_task_that_there_is_not_has_none() -> None:
    """The usual error."""
    group = Watched()
    group.begin("t")
    assert group.ask(GetTaskAlarms(task="u")).error == "UNKNOWN_TASK"
