"""Claims: who is granted which task, and who has to wait for it (protocol §5, Ownership)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks, purgatory, scheduling, sessions
from manager.core.task_registry import WaitingClaim
from manager.core.tasks import (
    aside,
    definitions,
    exceeded,
    former_owners,
    homes,
    ownership,
    probation,
    settling,
)
from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse, GrantedTask, PendingTask, RefusedTask
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manager.core.member import Member, Parked
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn


def claim(turn: Turn, request: ClaimRequest, parked: Parked) -> None:
    """Grant what is free; wait when nothing is, if the caller wants to."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    checks.stable(group)
    sessions.request_accepted(turn, member, parked)
    response = _serve(turn, member, request)
    wait_ms = member.held_for_ms(request.wait_ms)
    if response.granted or not response.pending or not wait_ms:
        turn.answer(parked, response)
        return
    parked.wait()
    number = group.tasks.park_claim(WaitingClaim(member.id, parked, request))
    group.timers.set(purgatory.claim_key(number), turn.now + wait_ms)


def wait_over(turn: Turn, number: str) -> None:
    """A waiting claim has waited long enough: say what is still pending."""
    claim = turn.group.tasks.waiting.pop(number)
    member = turn.group.members[claim.member_id]
    turn.answer(claim.parked, _serve(turn, member, claim.request))


def serve_waiting(turn: Turn) -> None:
    """Something was let go: answer every waiting claim that gets anything of it."""
    group = turn.group
    for number, claim in tuple(group.tasks.waiting.items()):
        response = _serve(turn, group.members[claim.member_id], claim.request)
        if response.granted or not response.pending:
            purgatory.unpark_claim(group, number)
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
        pending=tuple(_to_prepare(turn, pending, request.prepare)),
        refused=tuple(refused),
        tasks_revision=turn.group.header.tasks_revision,
    )


def _serve_one(
    turn: Turn, member: Member, task: str, *, is_busy: bool
) -> GrantedTask | PendingTask | RefusedTask:
    """`is_busy` says that the member has as many tasks to stop as it is given at a time."""
    registry = turn.group.tasks
    if task not in registry.definitions:
        return RefusedTask(task, ErrorCode.UNKNOWN_TASK)
    owner = registry.owner_of(task)
    assigned = registry.assigned.get(task)
    if owner == member.id:
        return _granted(turn, registry.ownership[task])
    if assigned != member.id or not _may_have(turn, member, task):
        return RefusedTask(task, ErrorCode.NOT_ASSIGNED)
    former = former_owners.holder(registry.ownership_of(turn.group.name, task))
    if owner is not None or former not in {None, member.id}:
        return PendingTask(task, owner or former or "")
    if (is_busy and registry.is_to_stop(task)) or probation.must_wait(turn.group, member, task):
        return PendingTask(task, "")
    row = ownership.grant(turn, task, member)
    probation.begin(turn, row)
    aside.begin(turn, task)
    exceeded.begin(turn, task)
    return _granted(turn, row)


def _may_have(turn: Turn, member: Member, task: str) -> bool:
    group = turn.group
    if group.transfers.is_packed(task):
        return False
    return settling.may_have(group, member, task) and homes.may_have(group, member, task)


def _to_prepare(turn: Turn, pending: Sequence[PendingTask], most: int) -> Iterator[PendingTask]:
    """The pending tasks; the first `most` of those that are to run when their owner lets go say as what."""
    registry = turn.group.tasks
    for each in pending:
        definition = registry.definitions[each.task]
        if not most or not each.owner or definition.target is not Target.RUNNING:
            yield each
            continue
        most -= 1
        row = registry.ownership_of(turn.group.name, each.task)
        yield msgspec.structs.replace(
            each,
            definition=definition.definition,
            reset=row.reset or msgspec.UNSET,
            home=row.home or msgspec.UNSET,
        )


def _granted(turn: Turn, row: OwnershipRow) -> GrantedTask:
    definition = turn.group.tasks.definitions[row.task]
    return GrantedTask(
        task=row.task,
        token=row.token,
        target=definition.target.value,
        definition=definition.definition,
        definition_version=definition.definition_version,
        restart_count=definition.restart_count,
        reset=row.reset,
        reached=turn.group.tasks.reached_by(row.task),
        home=row.home,
    )


def owner_too_slow(turn: Turn, task: str) -> None:
    """An owner had its rebalance timeout to let go: its token is fenced, and its next report tells it so.

    The announcement has it report at once, whatever it is about to do. A task that it was to stop is its no
    more, though it was given to it: it would claim it at once, and hold it for another such time.
    """
    registry = turn.group.tasks
    owner = registry.owner_of(task)
    if owner is None:
        return
    definitions.announce(turn, task)
    probation.taken_away(turn, task)
    ownership.take_away(turn, task, turn.now)
    if registry.is_to_stop(task) and registry.assigned.get(task) == owner:
        registry.unassign(task)
    if task not in registry.assigned and registry.is_runnable(task):
        scheduling.rebalance_soon(turn)
    serve_waiting(turn)


def former_owner_stopped(turn: Turn, task: str) -> None:
    """A former owner has not been heard for so long that it runs nothing any more, by its own lease."""
    former_owners.end(turn, task)
    serve_waiting(turn)
