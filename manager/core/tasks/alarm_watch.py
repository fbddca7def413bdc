"""Looks at the tasks and workers of a group from time to time, and rings: docs/alarms.md.

The group is looked at in slices, so that one of a hundred thousand tasks holds up nobody. What a pass has
found is stored when all was looked at: an alarm's row and the event that tells of it in one transaction, so
whoever takes the group over rings neither twice nor never. Of more than `ROWS_AT_ONCE` alarms of one notice
the rows of the rest follow in turns of their own; a crash between them may tell of the rest again.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.alarms import task_conditions, worker_conditions
from manager.core.alarms.alarms import Fitting, Key, Pass
from manager.core.alarms.book import for_task
from manager.core.alarms.facts import Restarts, TaskFacts, WorkerFacts
from manager.core.alarms.findings import MEMBER, TASK, Finding
from manager.core.alarms.life import Moment
from manager.core.alarms.looking import Look
from manager.core.alarms.seen import TaskSeen, WorkerSeen
from manager.core.restart_counts import count
from manager.core.tasks import lag
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from manager.core.alarms.alarms import GroupAlarms
    from manager.core.alarms.findings import Batch
    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.stored_rows import AlarmRow, OwnershipRow
    from manager.core.turn import Turn
    from protocol.messages.alarms import AlarmRule

ALARMS: Final = ("alarms", "")
EVERY_MS: Final = 10_000
"""Between the end of a pass and the next one."""
SETTLE_MS: Final = 60_000
"""Nothing fires for so long after a group was taken up: its workers have yet to come back and report."""
GAP_MS: Final = 30_000
"""Between two looks: if it was longer, nobody has looked meanwhile, nor heard anything."""
TASKS_AT_ONCE: Final = 100
COMPARED_AT_ONCE: Final = 2_500
"""Patterns with names, in a slice of a pass that is the first one with these rules."""
ROWS_AT_ONCE: Final = 200
"""Of one turn; what takes longer would hold up heartbeats."""
BETWEEN_SLICES_MS: Final = 1
CAUSES_TOLD: Final = 3
CAUSE_LENGTH: Final = 300
"""Characters of each."""
TOLD_AS: Final = {
    Finding.FIRES: EventType.ALARM_FIRING,
    Finding.REPEATS: EventType.ALARM_FIRING,
    Finding.RESOLVES: EventType.ALARM_RESOLVED,
}


def arm(group: Group, now: int) -> None:
    """Have the group looked at, if there is anything to look for and that is not arranged yet."""
    if ALARMS not in group.timers and group.alarms.wants_passes(group.name):
        group.timers.set(ALARMS, now + EVERY_MS)


def time_over(turn: Turn, _: str = "") -> None:
    """Look at the next slice, or store what was found."""
    group, alarms = turn.group, turn.group.alarms
    _note_gap(alarms, turn.now)
    if alarms.under_way is None:
        if group.is_new or not alarms.wants_passes(group.name):
            return
        alarms.under_way = Pass(alarms.book, alarms.rules(group.name), tuple(group.tasks.names))
    under_way = alarms.under_way
    if under_way.batches is None:
        _look_on(turn, under_way)
    if under_way.batches is not None:
        _store(turn, under_way.batches)
    if under_way.batches is not None and not under_way.batches:
        alarms.under_way = None
    wait_ms = EVERY_MS if alarms.under_way is None else BETWEEN_SLICES_MS
    group.timers.set(ALARMS, turn.now + wait_ms)


def end_with_group(turn: Turn) -> None:
    """Of a group that is none any more nobody would look at its alarms, whatever its last piece was."""
    alarms = turn.group.alarms
    if (alarms.firing or alarms.past or alarms.under_way) and turn.group.is_new:
        forget(turn)


def forget(turn: Turn) -> None:
    """The group goes, and with it all its alarms; whoever was told of one hears that it is over.

    What a pass under way has found goes with it: it would be told and stored of a group that is none.
    """
    alarms = turn.group.alarms
    alarms.under_way = None
    under_way = Pass(alarms.book, (), ())
    look = Look(turn.group.name, alarms, under_way, _moment(turn))
    for row in tuple(alarms.firing.values()):
        look.resolve(row)
    for batch in under_way.findings.take():
        _tell(turn, batch)
    for row in (*alarms.firing.values(), *alarms.past.values()):
        turn.drop(row)


def _note_gap(alarms: GroupAlarms, now: int) -> None:
    """A manager that was frozen, or had no rules, knows no more than one that takes the group over.

    What it has heard last is old, and the time since then is not time in which it has heard nothing.
    """
    if alarms.looked_at is not None and now - alarms.looked_at > GAP_MS:
        alarms.begin_anew(now)
    alarms.looked_at = now


def _moment(turn: Turn) -> Moment:
    loaded_at = turn.group.alarms.loaded_at
    may_fire = loaded_at is None or turn.now - loaded_at >= SETTLE_MS
    return Moment(turn.now, turn.instant.wall, may_fire)


def _look_on(turn: Turn, under_way: Pass) -> None:
    alarms = turn.group.alarms
    look = Look(turn.group.name, alarms, under_way, _moment(turn))
    end, under_way.compared = min(under_way.place + TASKS_AT_ONCE, len(under_way.tasks)), 0
    while under_way.place < end and under_way.compared < COMPARED_AT_ONCE:
        _look_at_task(turn, look, under_way.tasks[under_way.place], under_way)
        under_way.place += 1
    if under_way.place < len(under_way.tasks):
        return
    for member in turn.group.members.values():
        _look_at_worker(turn, look, member, under_way)
    _end_others(alarms, look, under_way)
    _forget_gone(turn.group)
    under_way.batches = deque(under_way.findings.take())


def _look_at_task(turn: Turn, look: Look, task: str, under_way: Pass) -> None:
    registry, alarms = turn.group.tasks, turn.group.alarms
    if task not in registry.definitions:
        return
    if task in alarms.gone:  # what is not looked at ends; another task of the name begins with the next pass
        alarms.gone.remove(task)
        return
    rules = _rules_for(turn.group, task, under_way)
    if not rules:
        return
    facts = facts_of(turn, task)
    seen = alarms.tasks.get(task)
    if seen is None:
        seen = alarms.tasks[task] = TaskSeen(alarms.loaded_at)
    if seen.loaded_at != alarms.loaded_at:
        seen.begin_anew(alarms.loaded_at)
    seen.look(facts, turn.now)
    causes = partial(_causes, turn.group, task)
    for rule in rules:
        reading = task_conditions.read(rule, facts, seen, turn.now, turn.instant.wall)
        look.take(rule, TASK + task, reading, facts.owner, causes)


def _rules_for(group: Group, task: str, under_way: Pass) -> tuple[AlarmRule, ...]:
    """Found out once for each definition and book: globs are not compared in every pass."""
    row, fitting = group.tasks.definitions[task], group.alarms.fitting
    known = fitting.get(task)
    if (
        known is None
        or known.book is not under_way.book
        or known.definition_version != row.definition_version
    ):
        under_way.compared += under_way.patterns
        found = for_task(under_way.rules, task, row.labels)
        known = fitting[task] = Fitting(under_way.book, row.definition_version, found)
    return known.rules


def facts_of(turn: Turn, task: str) -> TaskFacts:
    """What is known of a task at this moment."""
    registry = turn.group.tasks
    row = registry.ownership_of(turn.group.name, task)
    progress = registry.progress.get(task)
    return TaskFacts(
        target=registry.definitions[task].target,
        state=row.state,
        state_since_ms=row.since_ms,
        owner=row.owner,
        token=row.token,
        is_quarantined=row.is_quarantined,
        batch_id=progress.batch_id if progress is not None else None,
        metrics=progress.metrics if progress is not None else None,
        lag=lag.shown(turn, task),
        restarts=partial(_restarts, turn, row),
    )


def _restarts(turn: Turn, row: OwnershipRow, window_ms: int) -> Restarts:
    """Of before there were counts, and of before the group was taken up then, nobody knows."""
    wall_ms, since_ms = turn.instant.wall, turn.group.tasks.history.since_ms
    times = count(row.restarts or b"", window_ms, wall_ms)
    is_all = row.restarts is not None or since_ms is None or since_ms <= wall_ms - window_ms
    return Restarts(times, is_all)


def _causes(group: Group, task: str) -> tuple[str, ...]:
    """The last different ones, the newest first, each cut to its first line."""
    present = group.tasks.ownership_of(group.name, task).cause
    lines = (line.cause for line in group.tasks.history.newest_first(task))
    told = (cause.partition("\n")[0][:CAUSE_LENGTH] for cause in (present, *lines) if cause)
    return tuple(dict.fromkeys(told))[:CAUSES_TOLD]


def _look_at_worker(turn: Turn, look: Look, member: Member, under_way: Pass) -> None:
    alarms = turn.group.alarms
    rules = under_way.worker_rules
    metadata = member.worker_metadata() if rules else None
    if metadata is None:
        return
    tally = turn.group.tasks.tally.by_owner.get(member.id)
    facts = WorkerFacts(
        load=tally.load if tally is not None else None,
        tasks=tally.states.total() if tally is not None else 0,
        capacity=metadata.capacity,
        resources=member.resources,
    )
    seen = alarms.workers.get(member.id)
    if seen is None:
        seen = alarms.workers[member.id] = WorkerSeen()
    for rule in rules:
        reading = worker_conditions.read(rule, facts, seen, turn.now)
        look.take(rule, MEMBER + member.id, reading, None, lambda: ())


def _end_others(alarms: GroupAlarms, look: Look, under_way: Pass) -> None:
    """What no rule is about any more: its task or worker is gone, or its rule.

    A rule that cannot be read is about something that nobody here knows.
    """
    for key, row in alarms.firing.items():
        if key not in under_way.looked_at and key.rule not in under_way.book.unread:
            look.resolve(row)
    for key in alarms.standings.keys() - under_way.looked_at:
        del alarms.standings[key]
        alarms.values.pop(key, None)


def _forget_gone(group: Group) -> None:
    alarms = group.alarms
    alarms.gone.intersection_update(group.tasks.definitions)
    for member_id in alarms.workers.keys() - group.members.keys():
        del alarms.workers[member_id]


def _store(turn: Turn, batches: deque[Batch]) -> None:
    """Some rows, those of a notice's first alarms together with it."""
    room = ROWS_AT_ONCE
    while batches and room > 0:
        batch = batches[0]
        if not batch.stored:
            _tell(turn, batch)
        rows = batch.rows[batch.stored : batch.stored + room]
        for row in rows:
            _put(turn, batch.finding, row)
        batch.stored += len(rows)
        room -= len(rows)
        if batch.stored == len(batch.rows):
            batches.popleft()
    for row in turn.group.alarms.surplus():
        turn.drop(row)


def _tell(turn: Turn, batch: Batch) -> None:
    notice = batch.notice()
    if notice is None:
        return
    verb = "is resolved" if batch.finding is Finding.RESOLVES else "fires"
    turn.note(f"alarm {notice.rule} {verb}: {notice.count}")
    turn.tell(TOLD_AS[batch.finding], alarm=notice)


def _put(turn: Turn, finding: Finding, row: AlarmRow) -> None:
    """What somebody acknowledged since the alarm was looked at stays so."""
    present = turn.group.alarms.firing.get(Key(row.rule, row.subject))
    if present is None:
        if finding is Finding.FIRES:
            turn.put(row)
        return
    turn.put(
        msgspec.structs.replace(
            row,
            acknowledged_by=present.acknowledged_by,
            acknowledged_at_ms=present.acknowledged_at_ms,
        )
    )
