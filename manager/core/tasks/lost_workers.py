"""Tasks of lost workers, kept for their return for a while (`lost_task_delay_ms`; after KIP-415).

A worker is lost when it fell silent; whoever leaves, is drained or removed is not expected back. It has
returned when a new member comes with the same instance id, or else the same client id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.base import NULL

if TYPE_CHECKING:
    from manager.core.group import Group, TimerKey
    from manager.core.member import Member
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn

KEPT = "tasks kept"


def _timer(worker: str) -> TimerKey:
    return (KEPT, worker)


def _worker(member: Member) -> str:
    """What tells a worker from others across restarts."""
    return member.row.instance_id or member.row.client_id


def keep(turn: Turn, names: tuple[str, ...], member: Member) -> None:
    """`member` was lost and owned these tasks: they wait for its return, if the settings say so."""
    group, worker = turn.group, _worker(member)
    delay_ms = group.settings.lost_task_delay_ms
    if not names or not delay_ms:
        return
    kept = [name for name in names if group.tasks.is_runnable(name) and not group.tasks.is_to_stop(name)]
    for name in kept:
        turn.update(group.tasks.ownership[name], lost_by=worker)
    group.timers.set(_timer(worker), turn.now + delay_ms)
    turn.note(f"{len(kept)} tasks are kept for {worker}, {delay_ms} ms at most")


def on_load(turn: Turn) -> None:
    """After a reload, every lost worker has the full time again."""
    for row in _kept(turn.group):
        turn.group.timers.set(_timer(str(row.lost_by)), turn.now + turn.group.settings.lost_task_delay_ms)


def release(turn: Turn, worker: str) -> bool:
    """The tasks kept for a worker are anybody's; false if there are none."""
    kept = [row for row in _kept(turn.group) if row.lost_by == worker]
    for row in kept:
        turn.update(row, lost_by=None)
    return bool(kept)


def given_back(turn: Turn) -> None:
    """What has been given to a worker is kept for nobody any more, even if its claim is yet to be granted."""
    for row in _kept(turn.group):
        if row.task in turn.group.tasks.assigned:
            turn.update(row, lost_by=None)


def _kept(group: Group) -> list[OwnershipRow]:
    return [group.tasks.ownership[task] for task in group.tasks.kept]


def returned(group: Group) -> dict[str, str]:
    """The workers that have come and have no assignment yet, by what tells them from others: member ids."""
    return {_worker(m): m.id for m in group.members.values() if m.row.assignment == NULL}
