"""Leave, one or many at a time (protocol §3.4; KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, member_ids
from manager.core.membership import rebalance
from manager.core.membership.departure import depart
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.membership import LeaveResponse, LeftMember

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.turn import Turn
    from protocol.messages.membership import Leaver, LeaveRequest


def leave(turn: Turn, request: LeaveRequest, parked: Parked) -> None:
    """Remove each named member; however many go, the group rebalances once."""
    checks.not_dead(turn.group)
    before = len(turn.group.members)
    outcomes = tuple(
        LeftMember(leaver.member_id, leaver.instance_id, _leave_one(turn, leaver))
        for leaver in request.members
    )
    turn.answer(parked, LeaveResponse(members=outcomes))
    if len(turn.group.members) < before:
        rebalance.start(turn, _told_reasons(request, outcomes) or "members left")
    else:
        rebalance.maybe_complete(turn)


def _told_reasons(request: LeaveRequest, outcomes: tuple[LeftMember, ...]) -> str:
    """The words of those who left, each once (KIP-800)."""
    told = zip(request.members, outcomes, strict=True)
    reasons = [leaver.reason for leaver, left in told if leaver.reason and left.error == ErrorCode.NONE]
    return "; ".join(dict.fromkeys(reasons))


def _leave_one(turn: Turn, leaver: Leaver) -> ErrorCode:
    group = turn.group
    if leaver.member_id in group.outstanding and leaver.instance_id is None:
        member_ids.forget(turn, leaver.member_id)
        return ErrorCode.NONE
    try:
        member = _find(group, leaver)
    except RefusedError as refusal:
        return refusal.failure.code
    stopped = leaver.stopped and leaver.member_id == member.id
    why = leaver.reason or ("it left" if leaver.engine is None else "its engine died")
    if leaver.out_of_memory:
        group.tasks.heap.out_of_memory(member.id)
    depart(turn, [member], why, engine=leaver.engine, stopped=stopped)
    return ErrorCode.NONE


def _find(group: Group, leaver: Leaver) -> Member:
    if not leaver.member_id and leaver.instance_id in group.statics:
        return group.members[group.statics[leaver.instance_id]]
    return checks.member(group, leaver.member_id, leaver.instance_id)
