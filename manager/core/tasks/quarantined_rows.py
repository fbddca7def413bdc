"""Rows that tasks have put aside: a request about them goes to the one worker that reaches them.

That is the owner of the task, under the token that it has when it is asked: whoever has lost it is to touch
nothing any more (protocol §5, Quarantined rows). Tasks that are quarantined because they kill workers are
`manager.core.tasks.quarantine`. The way there and back is that of `manager.core.tasks.errands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks as rules
from manager.core.task_registry import Holding
from manager.core.tasks import errands
from protocol.errands import ErrandKind
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.quarantine import FetchQuarantineResponse, QuarantineResponse

if TYPE_CHECKING:
    from manager.core.commands import AskQuarantine
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn
    from protocol.messages.quarantine import (
        FetchQuarantineRequest,
        QuarantineAnswer,
        ReportQuarantineRequest,
    )


def begin(turn: Turn, request: AskQuarantine, parked: Parked) -> None:
    """Give the request to the owner of the task; whoever asked waits for its answer."""
    group = turn.group
    task = rules.task(group, request.task).task
    rules.stable(group)
    ownership = group.tasks.ownership_of(group.name, task)
    member = group.members.get(ownership.owner or "")
    if member is None:
        raise RefusedError(ErrorCode.TASK_NOT_OWNED, _why_nobody(group, ownership))
    _require_able(group, member, task)
    errands.give(turn, member, request, parked, Holding(task, ownership.token))


def _why_nobody(group: Group, ownership: OwnershipRow) -> str:
    """Why nobody has it, and what to do."""
    task = ownership.task
    if group.tasks.is_to_stop(task):
        to_do = "pause or resume it first"
    elif not group.tasks.is_runnable(task):
        to_do = "restart it first" if ownership.is_quarantined else "have it run again first"
    else:
        to_do = "ask again when a worker has it"
    cause = ": " + ownership.cause.partition("\n")[0] if ownership.cause else ""
    return f"no worker has task {task}, which is {ownership.state.value}; {to_do}{cause}"


def _require_able(group: Group, member: Member, task: str) -> None:
    metadata = member.worker_metadata()
    if metadata is None or not metadata.quarantine:
        message = (
            f"the worker {member.id} of task {task} is of an earlier version, which knows nothing of"
            " quarantined rows; upgrade it"
        )
        raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, message)
    kind = ErrandKind.QUARANTINE
    if not errands.is_free(group, member, kind) or not errands.has_room(group, kind):
        message = f"the worker {member.id} is at another such request, or the group has too many"
        raise RefusedError(ErrorCode.QUARANTINE_BUSY, f"{message}; try again in a moment")


def fetch(turn: Turn, request: FetchQuarantineRequest, parked: Parked) -> None:
    """Tell the worker what it is to do, with which task, under which token, and how long it may."""
    errand = errands.of_caller(turn, request, parked)
    asked: AskQuarantine = errand.request
    if errand.holding is None:
        raise AssertionError("a request about the rows of no task")
    wanted = msgspec.structs.replace(asked.wanted, timeout_ms=errands.left_ms(turn, errand))
    task, token = errand.holding
    turn.answer(parked, FetchQuarantineResponse(task=task, token=token, request=wanted))


def report(turn: Turn, request: ReportQuarantineRequest, parked: Parked) -> None:
    """Pass the worker's word on."""
    errands.report(turn, request, parked, _response)


def _response(worker: str, answer: QuarantineAnswer) -> QuarantineResponse:
    return QuarantineResponse(worker=worker, **msgspec.structs.asdict(answer))
