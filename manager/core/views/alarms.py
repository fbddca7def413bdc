"""Looking at alarms (protocol §5, Alarms)."""

from __future__ import annotations

from functools import partial
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING, Final

from manager.core import checks
from manager.core.alarms.alarms import Key
from manager.core.alarms.findings import member_of, task_of
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import Alarm, AlarmListResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manager.core.alarms.alarms import GroupAlarms
    from manager.core.alarms.book import AlarmBook
    from manager.core.commands import ListAlarms
    from manager.core.member import Parked
    from manager.core.stored_rows import AlarmRow
    from manager.core.turn import Turn
    from protocol.messages.alarms import AlarmRule

    Pending = tuple[Key, AlarmRule, int]
    """With since when its condition holds, since 1970."""

FIRING: Final = "firing"
PENDING: Final = "pending"
RESOLVED: Final = "resolved"
_WORST_FIRST: Final[dict[str, int]] = {severity: -place for place, severity in enumerate(Severity)}


def list_alarms(turn: Turn, request: ListAlarms, parked: Parked) -> None:
    """Answer with what fires and what is pending in the group; past ones as far as they are asked for."""
    group, alarms = turn.group, turn.group.alarms
    checks.known(group)
    pending = [*_pending(turn)]
    past = nlargest(request.past, alarms.past.values(), key=lambda row: row.resolved_at_ms)
    show = partial(shown, book=alarms.book, wall_ms=turn.instant.wall, alarms=alarms)
    found: list[Alarm] = [*map(show, first_of(alarms.firing.values(), request.limit))]
    if (room := request.limit - len(found)) > 0:
        found += (_as_pending(turn, each) for each in nsmallest(room, pending, key=_place_pending))
        found += map(show, sorted(past, key=_place))
    total = len(alarms.firing) + len(pending) + len(past)
    turn.answer(parked, AlarmListResponse(alarms=tuple(found[: request.limit]), total=total))


def first_of(rows: Iterable[AlarmRow], limit: int) -> list[AlarmRow]:
    """The worst, then the newest. To show one takes much longer, so that is for those that are told."""
    return nsmallest(limit, rows, key=_place)


def _place(row: AlarmRow) -> tuple[object, ...]:
    if row.resolved_at_ms:
        return 0, -row.resolved_at_ms, row.rule, row.subject
    return _WORST_FIRST[row.severity], -row.fired_at_ms, row.rule, row.subject


def _place_pending(pending: Pending) -> tuple[object, ...]:
    key, rule, since_ms = pending
    return _WORST_FIRST[rule.severity], -since_ms, key.rule, key.subject


def shown(row: AlarmRow, book: AlarmBook, wall_ms: int, alarms: GroupAlarms | None = None) -> Alarm:
    """One that fires or is over; `alarms` has the present figure of one that fires, if it is known."""
    task, is_over = task_of(row.subject), bool(row.resolved_at_ms)
    value = row.value
    if alarms is not None and not is_over and value is not None:
        value = alarms.values.get(Key(row.rule, row.subject), value)
    return Alarm(
        group=row.group,
        rule=row.rule,
        kind=row.kind,
        severity=Severity(row.severity),
        state=RESOLVED if is_over else FIRING,
        since_ms=row.since_ms,
        task=task,
        member=member_of(row.subject),
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


def _pending(turn: Turn) -> Iterator[Pending]:
    alarms, wall_ms = turn.group.alarms, turn.instant.wall
    for key, standing in alarms.standings.items():
        rule = alarms.book.by_name.get(key.rule)
        if standing.pending_since is None or rule is None:
            continue
        since_ms = wall_ms - (turn.now - standing.pending_since)
        yield key, rule, since_ms


def _as_pending(turn: Turn, pending: Pending) -> Alarm:
    key, rule, since_ms = pending
    group, task = turn.group, task_of(key.subject)
    return Alarm(
        group=group.name,
        rule=rule.name,
        kind=rule.kind.value,
        severity=rule.severity,
        state=PENDING,
        since_ms=since_ms,
        task=task,
        member=member_of(key.subject),
        worker=None if task is None else group.tasks.owner_of(task),
        value=None if rule.threshold is None else group.alarms.values.get(key),
        threshold=rule.threshold,
        silenced=group.alarms.book.is_silenced(rule.name, group.name, task, turn.instant.wall),
        receivers=rule.receivers,
    )
