"""Tasks that have yet to show that they do their worker no harm, and what a worker's death says of them.

A task is on probation from its grant until it has got through a batch, has come to rest, or has been believed
(`quarantine.proof_ms`). It is for those on probation that a death counts. What may have killed workers is
granted only where nothing else is on probation, so that the next death is its own
(`manager.core.tasks.quarantine`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.stored_rows import WorkerDeath
from manager.core.task_registry import LIVE_STATES, LostOnProbation
from manager.core.tasks import quarantine, quarantining
from protocol.messages.membership import EngineEnd
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from manager.core.group import Group, TimerKey
    from manager.core.member import Member
    from manager.core.stored_rows import OwnershipRow
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn
    from protocol.messages.ownership import TaskReport

PROBATION: Final = "probation"
CLEARED_FOR_ONE_MORE: Final = 4
"""Suspects that a worker has to get through for each more that may be on probation there at a time.

A worker may have run hundreds: one by one they would take minutes, so their number grows as long as all goes
well, and begins anew on another worker when it does not."""


def key(task: str) -> TimerKey:
    """The timer that ends the probation of a task."""
    return (PROBATION, task)


def begin(turn: Turn, row: OwnershipRow) -> None:
    """The task was granted: it is on probation."""
    group = turn.group
    group.tasks.probation[row.task] = turn.now
    group.timers.set(key(row.task), turn.now + _proof_ms(group, row))


def _proof_ms(group: Group, row: OwnershipRow) -> int:
    """A worker that the task kills within one session of its grant is found out within two."""
    return max(quarantine.proof_ms(row), 2 * group.members[str(row.owner)].row.session_timeout_ms)


def on_load(turn: Turn) -> None:
    """After a reload, whatever deaths are held against has the full time again; all others are believed.

    What was taken from a silent worker just before is forgotten.
    """
    for row in turn.group.tasks.ownership.values():
        if row.blame is not None and row.owner is not None:
            begin(turn, row)


def taken_away(turn: Turn, task: str) -> None:
    """The task is about to be taken from an owner that does not let go, dead of it perhaps.

    Without this, poison whose workers have a session longer than their rebalance timeout would be taken from
    each before anybody knows that it is dead, and never be found.
    """
    registry = turn.group.tasks
    row = registry.ownership[task]
    if task in registry.probation and row.state in LIVE_STATES:
        owner = turn.group.members[str(row.owner)]
        registry.in_doubt.setdefault(task, {})[owner.id] = LostOnProbation(
            registry.probation[task], owner.heard_at
        )


def is_harmless(entry: TaskReport) -> bool:
    """Whether a report clears its task: it has got through a batch, or has come to rest."""
    return entry.batch_id is not None or entry.state not in LIVE_STATES


def clear(turn: Turn, task: str) -> bool:
    """The task does its worker no harm. Returns whether that was in doubt."""
    group = turn.group
    if group.tasks.probation.pop(task, None) is None:
        return False
    group.tasks.in_doubt.pop(task, None)
    group.timers.cancel(key(task))
    row = group.tasks.ownership[task]
    if row.blame is None:
        return False
    if row.owner is not None and quarantine.is_suspect(row):
        group.members[row.owner].cleared += 1
        turn.note(f"task {task} was started alone, and did no harm")
    turn.update(row, blame=None)
    return True


def has_any(group: Group) -> bool:
    """Whether any task is to be started alone, of those that somebody is to run.

    One that no worker can run has no worker of its own, and may never be cleared.
    """
    return any(is_suspect(group, task) for task in group.tasks.assigned if task in group.tasks.definitions)


def is_suspect(group: Group, task: str) -> bool:
    """Whether the task is to run, and alone at first."""
    registry = group.tasks
    is_wanted = registry.definitions[task].target is Target.RUNNING
    return is_wanted and quarantine.is_suspect(registry.ownership_of(group.name, task))


def behind_others(group: Group, tasks: Iterable[str]) -> list[str]:
    """The tasks of one claim in the order in which they are granted.

    What is no suspect is not kept waiting for one, so it comes first: begun beside a suspect, it would share
    the blame, and where one worker is left, no death would ever be a task's own.
    """
    known = group.tasks.definitions
    return sorted(tasks, key=lambda task: task in known and is_suspect(group, task))


def must_wait(group: Group, member: Member, task: str) -> bool:
    """Whether a suspect is not to be granted yet: others are on probation there, or still to move away."""
    if not is_suspect(group, task):
        return False
    registry = group.tasks
    owned = registry.owned_by(member.id)
    leaving = any(registry.assigned.get(each) != member.id for each in owned)
    on_probation = sum(each in registry.probation for each in owned)
    return leaving or on_probation >= 1 + member.cleared // CLEARED_FOR_ONE_MORE


def worker_died(turn: Turn, member: Member, how: str, engine: EngineEnd | None = None) -> bool:
    """Hold the death of `member` against the tasks that may have caused it; before they are taken from it.

    Returns whether one of them is a suspect now, or in quarantine: then the group is to be dealt anew.

    Those are the ones on probation, there or when they were taken from it since it was last heard. An engine
    that ended by itself was ended by one of its tasks: if none was on probation, by any of them. (A static
    worker that stopped in order falls silent, too: it ran nothing.)
    """
    registry = turn.group.tasks
    lost = _lost_in_silence(registry, member)
    live = [
        row for task in registry.owned_by(member.id) if (row := registry.ownership[task]).state in LIVE_STATES
    ]
    live += [registry.ownership[task] for task in lost]
    began = registry.probation | lost
    blamed = [row for row in live if row.task in began]
    if not blamed and engine is EngineEnd.EXITED:
        blamed = live
    if live and len(blamed) != 1 and engine is not EngineEnd.EXITED:
        _relieve_others(turn, {row.task for row in blamed})
    for row in blamed:
        death = WorkerDeath(
            at_ms=turn.instant.wall,
            member_id=member.id,
            lived_ms=turn.now - began.get(row.task, turn.now),
            how=how[: quarantine.HOW_LENGTH],
            engine=engine,
            alone=len(blamed) == 1,
        )
        _hold_against(turn, row, death, is_anothers=row.owner not in {None, member.id})
    rows = [registry.ownership[row.task] for row in blamed]
    return any(quarantine.is_suspect(row) or row.is_quarantined for row in rows)


def _lost_in_silence(registry: TaskRegistry, member: Member) -> dict[str, int]:
    """What was taken from `member` on probation and may have killed it by then, and when it was granted."""
    return {
        task: lost.began
        for task, losers in registry.in_doubt.items()
        if (lost := losers.get(member.id)) is not None
        and lost.heard_at == member.heard_at
        and registry.definitions[task].target is Target.RUNNING
    }


def _relieve_others(turn: Turn, blamed: Collection[str]) -> None:
    for row in tuple(turn.group.tasks.ownership.values()):
        if row.blame is not None and row.task not in blamed and not row.blame.quarantined:
            turn.update(row, blame=quarantine.without_one_death(row.blame))


def _hold_against(turn: Turn, row: OwnershipRow, death: WorkerDeath, *, is_anothers: bool) -> None:
    """What another worker runs by now is not taken from that one: it will die of it as well, or clear it.

    Who has been silent for long may die after the task was found guilty by the deaths of others.
    """
    if row.is_quarantined:
        return
    held = quarantine.with_death(row.blame, death)
    if is_anothers:
        held = msgspec.structs.replace(held, quarantined=False)
    row = msgspec.structs.replace(row, blame=held)
    if is_anothers and (began := turn.group.tasks.probation.get(row.task)) is not None:
        turn.group.timers.set(key(row.task), began + _proof_ms(turn.group, row))
    if not held.quarantined:
        turn.put(row)
        return
    cause = quarantine.why_quarantined(held)
    quarantining.begin(turn, msgspec.structs.replace(row, cause=cause), death.member_id)


def pardon(turn: Turn, task: str) -> bool:
    """Somebody takes the task's side: nothing is held against it any more. Whether it was in quarantine."""
    group = turn.group
    group.tasks.in_doubt.pop(task, None)
    group.tasks.heap.forget(task)
    row = group.tasks.ownership_of(group.name, task)
    if row.blame is None:
        return False
    if not row.is_quarantined:
        turn.update(row, blame=None)
        return False
    quarantining.end(turn, row)
    return True
