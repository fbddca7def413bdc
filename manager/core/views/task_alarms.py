"""Looking at the rules of alarms that count for a task, with their present values (docs/alarms.md)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from manager.core import checks
from manager.core.alarms import task_conditions
from manager.core.alarms.alarms import Key
from manager.core.alarms.book import for_task
from manager.core.alarms.findings import TASK
from manager.core.alarms.seen import TaskSeen
from manager.core.tasks.alarm_watch import facts_of
from protocol.alarm_kinds import TRAITS
from protocol.messages.alarms import TaskAlarm, TaskAlarmsResponse

if TYPE_CHECKING:
    from manager.core.alarms.facts import Reading, TaskFacts
    from manager.core.commands import GetTaskAlarms
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from protocol.messages.alarms import AlarmRule


def get(turn: Turn, request: GetTaskAlarms, parked: Parked) -> None:
    """Answer with each rule that counts for the task, in their order."""
    row = checks.task(turn.group, request.task)
    alarms = turn.group.alarms
    rules = for_task(alarms.rules(turn.group.name), row.task, row.labels)
    facts = facts_of(turn, row.task)
    seen = _as_of_now(turn, row.task, facts)
    shown = tuple(
        _shown(turn, row.task, rule, task_conditions.read(rule, facts, seen, turn.now, turn.instant.wall))
        for rule in sorted(rules, key=alarms.book.rules.index)
    )
    turn.answer(parked, TaskAlarmsResponse(task=row.task, known=alarms.book.is_known, alarms=shown))


def _as_of_now(turn: Turn, task: str, facts: TaskFacts) -> TaskSeen:
    """A copy: whoever looks at a task changes nothing of what is remembered of it."""
    seen = deepcopy(turn.group.alarms.tasks.get(task)) or TaskSeen()
    seen.look(facts, turn.now)
    return seen


def _shown(turn: Turn, task: str, rule: AlarmRule, reading: Reading) -> TaskAlarm:
    alarms, wall_ms = turn.group.alarms, turn.instant.wall
    key = Key(rule.name, TASK + task)
    row, since = alarms.firing.get(key), alarms.standing(key).pending_since
    return TaskAlarm(
        rule=rule.name,
        kind=rule.kind.value,
        severity=rule.severity,
        state="firing" if row is not None else "ok" if since is None else "pending",
        value=reading.value,
        threshold=rule.threshold,
        unit=TRAITS[rule.kind].unit,
        since_ms=row.since_ms if row is not None else None if since is None else wall_ms - (turn.now - since),
        acknowledged_by=row.acknowledged_by if row is not None else None,
        silenced=alarms.book.is_silenced(rule.name, turn.group.name, task, wall_ms),
        receivers=rule.receivers,
    )
