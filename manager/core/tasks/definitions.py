"""Definitions and targets: what changes them, whom that wakes, when it rebalances (protocol §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks, purgatory, scheduling
from manager.core.commands import PutTaskResponse
from manager.core.stored_rows import TaskRow
from manager.core.tasks import carried_history, departed, former_owners, lag, ownership, probation
from manager.core.tasks.responses import status_response, task_response
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from protocol.messages.events import EventType
from protocol.states import GroupState, Target, TaskState

if TYPE_CHECKING:
    from manager.core.commands import CreateTask, DeleteTask, NewDefinition, PutTask, RestartTask, SetTarget
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn
    from protocol.messages.tasks import Reached


def create(turn: Turn, request: CreateTask, parked: Parked) -> None:
    """Add a task, and the group if need be."""
    group = turn.group
    checks.not_dead(group)
    if request.task in group.tasks.definitions:
        raise RefusedError(
            ErrorCode.TASK_EXISTS, f"there is a task {request.task} in group {group.name} already"
        )
    row = _add(turn, _new(group.name, request.task, request.definition, request.target))
    turn.answer(parked, task_response(turn, row))


def put(turn: Turn, request: PutTask, parked: Parked) -> None:
    """Add or replace; asking for what is already so changes nothing."""
    group = turn.group
    checks.not_dead(group)
    before, wanted = plan(group, request)
    checks.meets(request.conditions, before)
    departed.check(group, request)
    if wanted != before:
        checks.not_moving(group, request.task)
    row = upsert(turn, before, wanted)
    turn.answer(parked, PutTaskResponse(created=before is None, view=task_response(turn, row)))


def upsert(turn: Turn, before: TaskRow | None, wanted: TaskRow) -> TaskRow:
    """Carry out what `plan` told, whatever the conditions; the task as it is now."""
    if before is None:
        return _add(turn, wanted)
    row = _redefine(turn, before, msgspec.structs.replace(wanted, target=before.target))
    return retarget(turn, row, wanted.target)


def plan(group: Group, request: PutTask) -> tuple[TaskRow | None, TaskRow]:
    """The task as it is, None if there is none, and as `request` wants it: equal to that if nothing changes.

    Its revision is yet to grow; nothing is done.
    """
    before = group.tasks.definitions.get(request.task)
    if before is None:
        target = request.target or Target.RUNNING
        return None, _new(group.name, request.task, request.definition, target)
    wanted = _defined(before, request.definition)
    return before, msgspec.structs.replace(wanted, target=request.target or before.target)


def _new(group: str, task: str, definition: NewDefinition, target: Target) -> TaskRow:
    return TaskRow(
        group=group,
        task=task,
        definition=definition.document.copy(),
        definition_version=1,
        target=target,
        restart_count=0,
        revision=0,
        weight=definition.weight,
        worker=definition.worker,
        labels=definition.labels,
        needs=definition.needs,
        exclusive=definition.exclusive,
    )


def _defined(row: TaskRow, definition: NewDefinition) -> TaskRow:
    """The task under `definition`; under a new version if that is another than its own."""
    if row.definition == definition.document:
        return row
    return msgspec.structs.replace(
        row,
        definition=definition.document.copy(),
        definition_version=row.definition_version + 1,
        weight=definition.weight,
        worker=definition.worker,
        labels=definition.labels,
        needs=definition.needs,
        exclusive=definition.exclusive,
    )


def _add(turn: Turn, row: TaskRow) -> TaskRow:
    row = change(turn, row, EventType.TASK_CREATED)
    start_over(turn, row)
    scheduling.rebalance_soon(turn)
    return row


def change(
    turn: Turn, row: TaskRow, kind: EventType = EventType.TASK_CHANGED, *, cause: str | None = None
) -> TaskRow:
    """Store a change of a task under the next revision, wake whom it concerns, and tell the outside.

    Args:
        turn: the step this is part of.
        row: the task as it is from now on, but for its revision.
        kind: the event that it is told as.
        cause: why, if nobody has asked for it.
    """
    announce(turn, row.task)
    row = msgspec.structs.replace(row, revision=turn.group.header.tasks_revision)
    turn.put(row)
    turn.tell(
        kind,
        cause=cause,
        task=row.task,
        target=row.target.value,
        definition_version=row.definition_version,
        restart_count=row.restart_count,
    )
    return row


def announce(turn: Turn, task: str) -> None:
    """Something about `task` changes: owner and assignee learn of it now, or with their next heartbeat.

    The group's revision grows, so that a heartbeat that is lost on its way to them is answered again.
    """
    group = turn.group
    turn.update(group.header, tasks_revision=group.header.tasks_revision + 1)
    for member_id in {group.tasks.owner_of(task): None, group.tasks.assigned.get(task): None}:
        member = group.members.get(member_id) if member_id is not None else None
        if member is not None:
            member.concern_revision = group.header.tasks_revision
            purgatory.answer_heartbeat(turn, member)


def start_over(turn: Turn, row: TaskRow, reached: Reached | None = None) -> None:
    """A task that nobody runs starts over: nothing of before is shown, and it is kept for no lost worker.

    Args:
        turn: the step this is part of.
        row: the task.
        reached: how far it has come, if it is to go on from its checkpoint.
    """
    registry = turn.group.tasks
    turn.update(
        registry.ownership_of(turn.group.name, row.task),
        owner=None,
        state=registry.state_at_rest(row.task),
        batch_id=None,
        cause=None,
        since_ms=turn.instant.wall,
        lost_by=None,
        blame=None,
        reached=reached,
        restarts=b"",
    )


def _redefine(turn: Turn, row: TaskRow, wanted: TaskRow) -> TaskRow:
    if row.definition_version == wanted.definition_version:
        return row
    moved = _placed_by(wanted) != _placed_by(row)
    former_owners.remember(turn, row, wanted)
    lag.forget(turn, row.task)
    changed = change(turn, wanted)
    if _revive(turn, changed) or (moved and turn.group.tasks.is_runnable(row.task)):
        scheduling.rebalance_soon(turn)
    return changed


def _placed_by(row: TaskRow) -> tuple[object, ...]:
    """What of a task an assignor goes by."""
    return row.weight, row.worker, row.labels, row.needs, bool(row.exclusive)


def _revive(turn: Turn, row: TaskRow) -> bool:
    """A completed or quarantined task that is wanted again has to be placed again; whether it was one."""
    registry = turn.group.tasks
    completed = registry.ownership_of(turn.group.name, row.task).state is TaskState.COMPLETED
    if completed:
        start_over(turn, row, registry.reached_by(row.task))
    return probation.pardon(turn, row.task) or completed


def set_target(turn: Turn, request: SetTarget, parked: Parked) -> None:
    """Pause, resume or stop; whoever resumes a task takes its side against what is held against it."""
    row = retarget(turn, checks.movable(turn.group, request.task), request.target)
    if request.target is Target.RUNNING:
        _pardon(turn, row)
    turn.answer(parked, status_response(turn, row))


def retarget(turn: Turn, row: TaskRow, target: Target, *, pardons: bool = True) -> TaskRow:
    """Have something else wanted of a task.

    Args:
        turn: the step this is part of.
        row: the task.
        target: what is wanted.
        pardons: whether somebody who wants it to run takes its side against what is held against it.

    Returns:
        The task as it is now.
    """
    if target is row.target:
        return row
    registry, before = turn.group.tasks, row.target
    row = change(turn, msgspec.structs.replace(row, target=target))
    if before is Target.STOPPED:
        ownership.end_patience(turn, row.task)
    if target is Target.RUNNING and pardons:
        _pardon(turn, row)
    if Target.STOPPED in {before, target}:
        owned = registry.ownership_of(turn.group.name, row.task)
        if owned.owner is None and owned.state is not TaskState.COMPLETED:
            ownership.store_state(turn, msgspec.structs.replace(owned, state=_at_rest(turn, owned)))
        scheduling.rebalance_soon(turn)
    return row


def _at_rest(turn: Turn, owned: OwnershipRow) -> TaskState:
    """The state of a task that nobody has; in quarantine it waits for somebody, and not for a worker."""
    state = turn.group.tasks.state_at_rest(owned.task)
    return TaskState.FAILED if owned.is_quarantined and state is TaskState.UNASSIGNED else state


def _pardon(turn: Turn, row: TaskRow) -> None:
    """Whoever wants a task to run takes its side against what is held against it."""
    if probation.pardon(turn, row.task):
        scheduling.rebalance_soon(turn)


def restart(turn: Turn, request: RestartTask, parked: Parked) -> None:
    """Start the query anew on its owner, without a rebalance; a completed task runs once more."""
    row = checks.movable(turn.group, request.task)
    row = change(turn, msgspec.structs.replace(row, restart_count=row.restart_count + 1))
    if _revive(turn, row):
        scheduling.rebalance_soon(turn)
    turn.answer(parked, status_response(turn, row))


def delete(turn: Turn, request: DeleteTask, parked: Parked) -> None:
    """Forget a task; its owner finds out at once, its token goes on counting."""
    row = checks.movable(turn.group, request.task)
    checks.meets(request.conditions, row)
    remove(turn, row)
    turn.answer(parked, Response())


def remove(turn: Turn, row: TaskRow) -> None:
    """Forget a task of a group that goes on."""
    announce(turn, row.task)
    forget(turn, row)
    if turn.group.state is GroupState.EMPTY:
        scheduling.begin_retention(turn)
    scheduling.rebalance_soon(turn)


def forget(turn: Turn, row: TaskRow) -> None:
    """There is no such task any more; what is left of it is its token, and the number of its last reset."""
    if turn.group.tasks.owner_of(row.task) is not None:
        ownership.take_away(turn, row.task, turn.now)
    start_over(turn, row)
    carried_history.forget(turn, row.task)
    turn.drop(row)
    turn.tell(EventType.TASK_DELETED, task=row.task)
