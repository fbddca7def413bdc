"""What workers say of the tasks they own: releases and reports (protocol §5, Ownership)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks, scheduling, sessions
from manager.core.task_registry import TaskProgress
from manager.core.tasks import (
    aside,
    claims,
    exceeded,
    former_owners,
    heap_watch,
    lag,
    last_words,
    ownership,
    probation,
    quarantining,
    settling,
)
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.ownership import ReleaseRequest, ReportRequest, TaskErrorsResponse, TaskReport
from protocol.messages.tasks import Reached, TaskHome
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn


def release(turn: Turn, request: ReleaseRequest, parked: Parked) -> None:
    """The caller has these tasks no more; whoever waits for one gets it at once."""
    member = checks.member(turn.group, request.member_id, request.instance_id)
    sessions.request_accepted(turn, member, parked)
    running = frozenset(request.running)
    errors = {
        task: _release_one(turn, member, task, token, is_running=task in running)
        for task, token in request.tasks.items()
    }
    turn.answer(parked, TaskErrorsResponse(tasks=errors))
    claims.serve_waiting(turn)


def _release_one(turn: Turn, member: Member, task: str, token: int, *, is_running: bool) -> ErrorCode:
    error = _check_token(turn, member, task, token)
    if error is ErrorCode.NONE and is_running:
        ownership.take_away(turn, task, turn.now)
    elif error is ErrorCode.NONE:
        ownership.free(turn, task)
    elif not is_running:
        former_owners.released(turn, member, task, token)
    return error


def _check_token(turn: Turn, member: Member, task: str, token: int) -> ErrorCode:
    registry = turn.group.tasks
    if task not in registry.definitions:
        return ErrorCode.UNKNOWN_TASK
    row = registry.ownership_of(turn.group.name, task)
    return ErrorCode.NONE if (row.owner, row.token) == (member.id, token) else ErrorCode.STALE_TOKEN


def report(turn: Turn, request: ReportRequest, parked: Parked) -> None:
    """Take in how tasks are doing; the report of an old token changes nothing."""
    _check_reports(request.tasks)
    member = checks.member(turn.group, request.member_id, request.instance_id)
    sessions.request_accepted(turn, member, parked)
    if request.resources is not msgspec.UNSET:
        member.resources = request.resources
        heap_watch.note(turn, member, request.resources)
    errors = {entry.task: _report_one(turn, member, entry) for entry in request.tasks}
    turn.answer(parked, TaskErrorsResponse(tasks=errors, found=_judge(turn.group, request.found)))
    if any(entry.state in last_words.OWNERLESS or probation.is_harmless(entry) for entry in request.tasks):
        claims.serve_waiting(turn)


def _judge(
    group: Group, found: Mapping[str, int] | msgspec.UnsetType
) -> Mapping[str, str] | msgspec.UnsetType:
    """Of queries that somebody has found, whether their tokens are stale for good.

    The token of a deleted task goes on counting, and so tells what nobody may run any more. One that is
    higher than all that were given out here is of another manager's group, or forgotten: it is left alone. A
    lower one is taken for one of ours: those are not kept.
    """
    if found is msgspec.UNSET:
        return msgspec.UNSET
    return {
        task: (ErrorCode.STALE_TOKEN if _is_stale(_known_as(group, task), token) else ErrorCode.NONE)
        for task, token in found.items()
    }


def _known_as(group: Group, name: str) -> OwnershipRow | None:
    """The ownership of what queries call `name`; after a transfer that is not the task called so.

    What has gone to another group under that name is not ours to judge.
    """
    row = group.tasks.ownership.get(name.partition("~")[0])
    if row is None:
        return None
    home = row.home or TaskHome(group.name, row.task)
    return row if home == TaskHome(group.name, name) else None


def _is_stale(row: OwnershipRow | None, token: int) -> bool:
    return row is not None and (token < row.token or (token == row.token and row.owner is None))


def probation_over(turn: Turn, task: str) -> None:
    """A task has been up for so long that it is believed."""
    _clear(turn, task)
    claims.serve_waiting(turn)


def _clear(turn: Turn, task: str) -> None:
    """A task does no harm. Once none is suspected any more, none needs a worker of its own."""
    if probation.clear(turn, task) and not probation.has_any(turn.group):
        scheduling.rebalance_soon(turn)


def _check_reports(entries: Iterable[TaskReport]) -> None:
    for position, entry in enumerate(entries):
        if entry.state is TaskState.UNASSIGNED:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"tasks[{position}].state: UNASSIGNED is for the manager to say; release the task instead",
            )
        if entry.quarantine and (entry.state is not TaskState.FAILED or not (entry.cause or "").strip()):
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"tasks[{position}].quarantine: goes with state FAILED and a cause: its query is over, and"
                " somebody has to know why",
            )


def _report_one(turn: Turn, member: Member, entry: TaskReport) -> ErrorCode:
    error = _check_token(turn, member, entry.task, entry.token)
    if error is not ErrorCode.NONE:
        return error
    if probation.is_harmless(entry):
        _clear(turn, entry.task)
    registry = turn.group.tasks
    progress = registry.progress.setdefault(entry.task, TaskProgress(registry.ownership[entry.task].batch_id))
    if entry.batch_id is not None:
        progress.batch_id = entry.batch_id
        _note_reached(turn, member, entry, progress)
    elif entry.committed is not None:
        progress.batch_id = max(entry.committed, -1 if progress.batch_id is None else progress.batch_id)
    row = registry.ownership[entry.task]
    if entry.metrics is not None:
        registry.keep_metrics(entry.task, entry.metrics)
    progress.figures.record(turn.instant.wall, entry.batch_id, entry.metrics)
    aside.note(turn, entry, progress.aside)
    exceeded.note(turn, entry, progress)
    if entry.lag is not None:
        lag.note(turn, entry.task, entry.lag)
    if entry.state in last_words.OWNERLESS and last_words.is_overtaken(turn.group, entry):
        last_words.refuse(turn, entry.task)
        return ErrorCode.STALE_TOKEN
    if quarantining.is_asked_for(turn.group, entry):
        quarantining.grant_request(turn, _as_told(turn, row, member, entry), member.id)
    elif (entry.state, entry.cause) != (row.state, row.cause) or entry.state in last_words.OWNERLESS:
        _change_state(turn, row, member, entry)
    return ErrorCode.NONE


def _note_reached(turn: Turn, member: Member, entry: TaskReport, progress: TaskProgress) -> None:
    """The first batch in a checkpoint is stored at once, the others with whatever is stored next."""
    if entry.batch_id is None or entry.checkpoint is None:
        return
    progress.reached = reached = Reached(entry.batch_id, entry.checkpoint, member.id)
    row = turn.group.tasks.ownership[entry.task]
    if row.reached is None or row.reached.checkpoint != entry.checkpoint:
        turn.update(row, reached=reached)


def _change_state(turn: Turn, row: OwnershipRow, member: Member, entry: TaskReport) -> None:
    """Members have room for others now, where a task waits for some, and after a stop in any case."""
    registry = turn.group.tasks
    was_runnable = registry.is_runnable(row.task)
    told = _as_told(turn, row, member, entry)
    ownership.store_state(turn, told)
    is_rid_of_it = was_runnable and not registry.is_runnable(row.task)
    if is_rid_of_it and (told.state is TaskState.STOPPED or registry.has_waiting()):
        scheduling.rebalance_soon(turn)


def _as_told(turn: Turn, row: OwnershipRow, member: Member, entry: TaskReport) -> OwnershipRow:
    registry = turn.group.tasks
    state = entry.state
    if state is TaskState.STOPPED:
        state = registry.state_at_rest(row.task)  # it may have been resumed while it was being stopped
    return msgspec.structs.replace(
        row,
        state=state,
        owner=None if entry.state in last_words.OWNERLESS else row.owner,
        lease=None if entry.state in last_words.OWNERLESS else row.lease,
        unsettled=settling.is_left_open(row, member, entry),
        batch_id=registry.progress[row.task].batch_id,
        cause=entry.cause,
    )
