"""Claim, release, report (protocol §5, Ownership)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks, sessions, waiting
from manager.core.tasks import definitions, former_owners, ownership, probation, settling
from manager.core.tasks.registry import Progress, WaitingClaim
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    GrantedTask,
    PendingTask,
    RefusedTask,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
    TaskReport,
)
from protocol.messages.tasks import Reached
from protocol.states import Target, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.parked import Parked
    from manager.core.rows import OwnershipRow
    from manager.core.turn import Turn

OWNERLESS = frozenset({TaskState.STOPPED, TaskState.COMPLETED})
"""States in which a task belongs to nobody."""


def claim(turn: Turn, request: ClaimRequest, parked: Parked) -> None:
    """Grant what is free; wait when nothing is, if the caller wants to."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    checks.stable(group)
    sessions.heard(turn, member, parked)
    response = _serve(turn, member, request)
    wait_ms = min(request.wait_ms, member.row.session_timeout_ms // 3)
    if response.granted or not response.pending or not wait_ms:
        turn.answer(parked, response)
        return
    parked.wait()
    number = group.herd.park_claim(WaitingClaim(member.id, parked, request))
    group.timers.set(waiting.claim_key(number), turn.now + wait_ms)


def wait_over(turn: Turn, number: str) -> None:
    """A waiting claim has waited long enough: say what is still pending."""
    claim = turn.group.herd.waiting.pop(number)
    member = turn.group.members[claim.member_id]
    turn.answer(claim.parked, _serve(turn, member, claim.request))


def serve_waiting(turn: Turn) -> None:
    """Something was let go: answer every waiting claim that gets anything of it."""
    group = turn.group
    for number, claim in tuple(group.herd.waiting.items()):
        response = _serve(turn, group.members[claim.member_id], claim.request)
        if response.granted or not response.pending:
            waiting.unpark_claim(group, number)
            turn.answer(claim.parked, response)


def _serve(turn: Turn, member: Member, request: ClaimRequest) -> ClaimResponse:
    granted: list[GrantedTask] = []
    pending: list[PendingTask] = []
    refused: list[RefusedTask] = []
    stopping = settling.under_way(turn.group, member)
    for task in probation.behind_others(turn.group, dict.fromkeys(request.tasks)):
        outcome = _serve_one(turn, member, task, is_busy=len(stopping) >= settling.AT_ONCE)
        if isinstance(outcome, GrantedTask):
            granted.append(outcome)
            if outcome.target == Target.STOPPED.value:
                stopping.add(task)
        elif isinstance(outcome, PendingTask):
            pending.append(outcome)
        else:
            refused.append(outcome)
    return ClaimResponse(
        granted=tuple(granted),
        pending=tuple(pending),
        refused=tuple(refused),
        tasks_revision=turn.group.header.tasks_revision,
    )


def _serve_one(
    turn: Turn, member: Member, task: str, *, is_busy: bool
) -> GrantedTask | PendingTask | RefusedTask:
    """`is_busy` says that the member has as many tasks to stop as it is given at a time."""
    herd = turn.group.herd
    if task not in herd.definitions:
        return RefusedTask(task, ErrorCode.UNKNOWN_TASK)
    owner = herd.owner_of(task)
    assigned = herd.assigned.get(task)
    if owner == member.id:
        return _granted(turn, herd.ownership[task])
    if assigned != member.id or not settling.may_have(turn.group, member, task):
        return RefusedTask(task, ErrorCode.NOT_ASSIGNED)
    former = former_owners.holder(herd.ownership_of(turn.group.name, task))
    if owner is not None or former not in {None, member.id}:
        return PendingTask(task, owner or former or "")
    if (is_busy and herd.is_to_stop(task)) or probation.must_wait(turn.group, member, task):
        return PendingTask(task, "")
    row = ownership.grant(turn, task, member)
    probation.begin(turn, row)
    return _granted(turn, row)


def _granted(turn: Turn, row: OwnershipRow) -> GrantedTask:
    definition = turn.group.herd.definitions[row.task]
    return GrantedTask(
        task=row.task,
        token=row.token,
        target=definition.target.value,
        definition=definition.definition,
        definition_version=definition.definition_version,
        restart_count=definition.restart_count,
        reset=row.reset,
        reached=turn.group.herd.reached_by(row.task),
    )


def owner_too_slow(turn: Turn, task: str) -> None:
    """An owner had its rebalance timeout to let go: its token is fenced, and its next report tells it so.

    The announcement has it report at once, whatever it is about to do. A task that it was to stop is its no
    more, though it was given to it: it would claim it at once, and hold it for another such time.
    """
    herd = turn.group.herd
    owner = herd.owner_of(task)
    if owner is None:
        return
    definitions.announce(turn, task)
    probation.taken_away(turn, task)
    ownership.take_away(turn, task, turn.now)
    if herd.is_to_stop(task) and herd.assigned.get(task) == owner:
        del herd.assigned[task]
    if task not in herd.assigned and herd.is_runnable(task):
        definitions.gather(turn)
    serve_waiting(turn)


def former_owner_stopped(turn: Turn, task: str) -> None:
    """A former owner has not been heard for so long that it runs nothing any more, by its own lease."""
    former_owners.end(turn, task)
    serve_waiting(turn)


def release(turn: Turn, request: ReleaseRequest, parked: Parked) -> None:
    """The caller runs these tasks no more; whoever waits for one gets it at once."""
    member = checks.member(turn.group, request.member_id, request.instance_id)
    sessions.heard(turn, member, parked)
    errors = {task: _release_one(turn, member, task, token) for task, token in request.tasks.items()}
    turn.answer(parked, TaskErrorsResponse(tasks=errors))
    serve_waiting(turn)


def _release_one(turn: Turn, member: Member, task: str, token: int) -> ErrorCode:
    error = _check_token(turn, member, task, token)
    if error is ErrorCode.NONE:
        ownership.free(turn, task)
    else:
        former_owners.released(turn, member, task, token)
    return error


def _check_token(turn: Turn, member: Member, task: str, token: int) -> ErrorCode:
    herd = turn.group.herd
    if task not in herd.definitions:
        return ErrorCode.UNKNOWN_TASK
    row = herd.ownership_of(turn.group.name, task)
    return ErrorCode.NONE if (row.owner, row.token) == (member.id, token) else ErrorCode.STALE_TOKEN


def report(turn: Turn, request: ReportRequest, parked: Parked) -> None:
    """Take in how tasks are doing; the report of an old token changes nothing."""
    _check_reports(request.tasks)
    member = checks.member(turn.group, request.member_id, request.instance_id)
    sessions.heard(turn, member, parked)
    errors = {entry.task: _report_one(turn, member, entry) for entry in request.tasks}
    turn.answer(parked, TaskErrorsResponse(tasks=errors, found=_judge(turn.group, request.found)))
    if any(entry.state in OWNERLESS or probation.is_harmless(entry) for entry in request.tasks):
        serve_waiting(turn)


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
        task: (ErrorCode.STALE_TOKEN if _is_stale(group.herd.ownership.get(task), token) else ErrorCode.NONE)
        for task, token in found.items()
    }


def _is_stale(row: OwnershipRow | None, token: int) -> bool:
    return row is not None and (token < row.token or (token == row.token and row.owner is None))


def probation_over(turn: Turn, task: str) -> None:
    """A task has been up for so long that it is believed."""
    _clear(turn, task)
    serve_waiting(turn)


def _clear(turn: Turn, task: str) -> None:
    """A task does no harm. Once none is suspected any more, none needs a worker of its own."""
    if probation.clear(turn, task) and not probation.has_any(turn.group):
        definitions.gather(turn)


def _check_reports(entries: Iterable[TaskReport]) -> None:
    for position, entry in enumerate(entries):
        if entry.state is TaskState.UNASSIGNED:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"tasks[{position}].state: UNASSIGNED is for the manager to say; release the task instead",
            )


def _report_one(turn: Turn, member: Member, entry: TaskReport) -> ErrorCode:
    error = _check_token(turn, member, entry.task, entry.token)
    if error is not ErrorCode.NONE:
        return error
    if probation.is_harmless(entry):
        _clear(turn, entry.task)
    herd = turn.group.herd
    progress = herd.progress.setdefault(entry.task, Progress(herd.ownership[entry.task].batch_id))
    if entry.batch_id is not None:
        progress.batch_id = entry.batch_id
        _note_reached(turn, member, entry, progress)
    row = herd.ownership[entry.task]
    if entry.metrics is not None:
        progress.metrics = entry.metrics
    progress.figures.record(turn.instant.wall, entry.batch_id, entry.metrics)
    if (entry.state, entry.cause) != (row.state, row.cause) or entry.state in OWNERLESS:
        _change_state(turn, row, member, entry)
    return ErrorCode.NONE


def _note_reached(turn: Turn, member: Member, entry: TaskReport, progress: Progress) -> None:
    """The first batch in a checkpoint is stored at once, the others with whatever is stored next."""
    if entry.batch_id is None or entry.checkpoint is None:
        return
    progress.reached = reached = Reached(entry.batch_id, entry.checkpoint, member.id)
    row = turn.group.herd.ownership[entry.task]
    if row.reached is None or row.reached.checkpoint != entry.checkpoint:
        turn.put(msgspec.structs.replace(row, reached=reached))


def _change_state(turn: Turn, row: OwnershipRow, member: Member, entry: TaskReport) -> None:
    herd = turn.group.herd
    state = entry.state
    was_runnable = herd.is_runnable(row.task)
    if state is TaskState.STOPPED and herd.definitions[row.task].target is not Target.STOPPED:
        state = TaskState.UNASSIGNED  # it was resumed while it was being stopped
    ownership.settle(
        turn,
        msgspec.structs.replace(
            row,
            state=state,
            owner=None if entry.state in OWNERLESS else row.owner,
            lease=None if entry.state in OWNERLESS else row.lease,
            unsettled=settling.is_left_open(row, member, entry),
            batch_id=herd.progress[row.task].batch_id,
            cause=entry.cause,
        ),
    )
    if state is TaskState.STOPPED and was_runnable and not herd.is_runnable(row.task):
        definitions.gather(turn)
