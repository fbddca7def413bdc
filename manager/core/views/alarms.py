"""Looking at alarms (protocol §5, Alarms)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core import checks
from manager.core.alarms.alarms import Key
from manager.core.alarms.findings import manager_of, member_of, task_of
from manager.core.views.alarm_pages import page_of
from manager.core.written_places import written
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


def list_alarms(turn: Turn, request: ListAlarms, parked: Parked) -> None:
    """Answer with what fires and what is pending in the group; past ones as far as they are asked for."""
    group, alarms = turn.group, turn.group.alarms
    checks.known(group)
    page = page_of(alarms, request.past, request.limit, request.after)
    found = (
        _as_pending(turn, each)
        if isinstance(each, Key)
        else shown(each, alarms.book, turn.instant.wall, alarms)
        for each in page.listed
    )
    following = None if page.following is None else written(page.following)
    turn.answer(parked, AlarmListResponse(alarms=tuple(found), total=page.total, next=following))


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
