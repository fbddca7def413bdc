"""Looking at alarms (protocol §5, Alarms)."""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Final

from manager.core import checks
from manager.core.alarms.alarms import Key
from manager.core.alarms.findings import manager_of, member_of, task_of
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import Alarm, AlarmListResponse

if TYPE_CHECKING:
    from manager.core.alarms.alarms import GroupAlarms
    from manager.core.alarms.book import AlarmBook
    from manager.core.commands import ListAlarms
    from manager.core.member import Parked
    from manager.core.stored_rows import AlarmRow
    from manager.core.turn import Turn


FIRING: Final = "firing"
PENDING: Final = "pending"
RESOLVED: Final = "resolved"
_STATES: Final = (FIRING, PENDING, RESOLVED)
_SEVERITIES: Final = tuple(reversed(Severity))


def list_alarms(turn: Turn, request: ListAlarms, parked: Parked) -> None:
    """Answer with what fires and what is pending in the group; past ones as far as they are asked for."""
    group, alarms = turn.group, turn.group.alarms
    checks.known(group)
    firing = _worst_firing(alarms, request.limit)
    pending = _pending(alarms)
    past = nlargest(request.past, alarms.past.values(), key=lambda row: row.resolved_at_ms)
    found = [shown(row, alarms.book, turn.instant.wall, alarms) for row in (*firing, *past)]
    found += [_as_pending(turn, key) for key in _worst_pending(alarms, pending, request.limit - len(firing))]
    total = len(alarms.firing) + len(pending) + len(past)
    in_order = tuple(sorted(found, key=_place)[: request.limit])
    turn.answer(parked, AlarmListResponse(alarms=in_order, total=total))


def _worst_firing(alarms: GroupAlarms, limit: int) -> list[AlarmRow]:
    """And of these the newest, which have come last: only what is told is made ready to be told."""
    chosen: list[AlarmRow] = []
    for severity in _SEVERITIES:
        found = (row for row in reversed(alarms.firing.values()) if row.severity == severity)
        chosen += islice(found, limit - len(chosen))
    return chosen


def _worst_pending(alarms: GroupAlarms, pending: list[Key], limit: int) -> list[Key]:
    chosen: list[Key] = []
    for severity in _SEVERITIES:
        rules = {name for name, rule in alarms.book.by_name.items() if rule.severity is severity}
        chosen += islice((key for key in reversed(pending) if key.rule in rules), limit - len(chosen))
    return chosen


def _place(alarm: Alarm) -> tuple[object, ...]:
    newest = -(alarm.resolved_at_ms or alarm.fired_at_ms or alarm.since_ms)
    severity = 0 if alarm.state == RESOLVED else _SEVERITIES.index(alarm.severity)
    subject = alarm.task or alarm.member or alarm.manager or ""
    return _STATES.index(alarm.state), severity, newest, alarm.rule, subject


def shown(row: AlarmRow, book: AlarmBook, wall_ms: int, alarms: GroupAlarms | None = None) -> Alarm:
    """One that fires or is over; `alarms` has the present figure of one that fires, if it is known."""
    task, is_over = task_of(row.subject), bool(row.resolved_at_ms)
    value = row.value
    if alarms is not None and not is_over and value is not None:
        value = alarms.values.get(Key(row.rule, row.subject), value)
    return Alarm(
        group=row.group or None,
        rule=row.rule,
        kind=row.kind,
        severity=Severity(row.severity),
        state=RESOLVED if is_over else FIRING,
        since_ms=row.since_ms,
        task=task,
        member=member_of(row.subject),
        manager=manager_of(row.subject),
        worker=row.worker,
        value=value,
        threshold=row.threshold,
        fired_at_ms=row.fired_at_ms,
        told_at_ms=row.told_at_ms or None,
        resolved_at_ms=row.resolved_at_ms or None,
        acknowledged_by=row.acknowledged_by,
        acknowledged_at_ms=row.acknowledged_at_ms or None,
        silenced=not is_over and book.is_silenced(row.rule, row.group, task, wall_ms),
        receivers=row.receivers,
    )


def _pending(alarms: GroupAlarms) -> list[Key]:
    """All of them, the newest last."""
    rules = alarms.book.by_name
    return [
        key
        for key, standing in alarms.standings.items()
        if standing.pending_since is not None and key.rule in rules
    ]


def _as_pending(turn: Turn, key: Key) -> Alarm:
    group, task = turn.group, task_of(key.subject)
    rule, since = group.alarms.book.by_name[key.rule], group.alarms.standings[key].pending_since
    return Alarm(
        group=group.name,
        rule=rule.name,
        kind=rule.kind.value,
        severity=rule.severity,
        state=PENDING,
        since_ms=turn.instant.wall - (turn.now - (turn.now if since is None else since)),
        task=task,
        member=member_of(key.subject),
        worker=None if task is None else group.tasks.owner_of(task),
        value=None if rule.threshold is None else group.alarms.values.get(key),
        threshold=rule.threshold,
        silenced=group.alarms.book.is_silenced(rule.name, group.name, task, turn.instant.wall),
        receivers=rule.receivers,
    )
