"""Owners that went without saying that their query has stopped (docs/exactly-once.md, Without a fence).

A fenced sink refuses whatever a former owner still writes: its task moves at once. Any other sink takes rows
of two drivers, so its task waits until nothing of the former owner's runs any more (`protocol.worker_lease`).
That counts from the sending of the last request that was accepted, which is not later than its arrival here.
Only a release, or the report that a query has ended, proves that earlier; a broken connection does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.document import is_fenced
from manager.core.stored_rows import OwnerLease
from protocol.worker_lease import REASSIGN_PERCENT, part_of

if TYPE_CHECKING:
    from manager.core.group import Group, TimerKey
    from manager.core.member import Member
    from manager.core.stored_rows import OwnershipRow, TaskRow
    from manager.core.turn import Turn

LEASE = "owner's lease"


def key(task: str) -> TimerKey:
    """The timer that ends the wait for a former owner."""
    return (LEASE, task)


def begin(turn: Turn, row: OwnershipRow, member: Member, since: int) -> OwnerLease | None:
    """What the next owner of `row` has to wait for; None for a fenced task.

    Args:
        turn: the step in which `member` stops being the owner.
        row: the ownership that it had.
        member: who goes, or is taken the task from.
        since: when it has begun its last lease at the latest, by the monotonic clock in milliseconds.
    """
    timeout_ms = part_of(member.row.session_timeout_ms, REASSIGN_PERCENT)
    if not _is_unfenced(turn.group, row) or since + timeout_ms <= turn.now:
        return None
    turn.group.timers.set(key(row.task), since + timeout_ms)
    return OwnerLease(member.id, timeout_ms)


def _is_unfenced(group: Group, row: OwnershipRow) -> bool:
    definition = group.tasks.definitions.get(row.task)
    return row.lease is not None or (definition is not None and not is_fenced(definition.definition))


def remember(turn: Turn, before: TaskRow, after: TaskRow) -> None:
    """A definition changes: its owner may run the one without a fence for as long as it is the owner."""
    row = turn.group.tasks.ownership.get(before.task)
    if row is None or row.owner is None or is_fenced(before.definition) or not is_fenced(after.definition):
        return
    timeout_ms = part_of(turn.group.members[row.owner].row.session_timeout_ms, REASSIGN_PERCENT)
    turn.update(row, lease=OwnerLease(row.owner, timeout_ms))


def holder(row: OwnershipRow) -> str | None:
    """The former owner that may still run the task of `row`; None if there is none."""
    return row.lease.member_id if row.lease is not None and row.owner is None else None


def end(turn: Turn, task: str) -> None:
    """The former owner runs `task` no more."""
    turn.group.timers.cancel(key(task))
    turn.update(turn.group.tasks.ownership[task], lease=None)


def released(turn: Turn, member: Member, task: str, token: int) -> None:
    """`member` says that it runs `task` no more, after it was taken from it."""
    row = turn.group.tasks.ownership.get(task)
    if row is not None and (holder(row), row.token) == (member.id, token):
        end(turn, task)


def on_load(turn: Turn) -> None:
    """After a reload nobody knows when a former owner was heard last: it has the full time again."""
    for row in turn.group.tasks.ownership.values():
        if row.lease is not None and row.owner is None:
            turn.group.timers.set(key(row.task), turn.now + row.lease.timeout_ms)


def inherit(group: Group, dead: Group) -> None:
    """The tokens of a deleted group go on in `group`, and so does the wait for its former owners."""
    group.tasks.ownership = dead.tasks.ownership
    for task in group.tasks.ownership:
        deadline = dead.timers.deadline(key(task))
        if deadline is not None:
            group.timers.set(key(task), deadline)
