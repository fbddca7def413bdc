"""Sync: the leader's assignment becomes durable, then everybody hears of it (protocol §3.2, §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, group_states, purgatory, scheduling, sessions
from manager.core.membership import rebalance
from manager.core.membership.responses import sync_response
from manager.core.tasks import assignments, lost_workers, ownership
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import NULL
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.tasks.assignments import Placement
    from manager.core.turn import Turn
    from protocol.messages.membership import MemberAssignment, SyncRequest


def sync(turn: Turn, request: SyncRequest, parked: Parked) -> None:
    """Park a follower, store the leader's list, answer from what is stored."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    _check_protocol(group, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise checks.rebalancing(group)
    is_decision = group.state is GroupState.AWAITING_SYNC and group.is_leader(member)
    placement = assignments.read(group, request.assignments) if is_decision else None
    group.unsynced.discard(member.id)
    sessions.request_accepted(turn, member, parked)
    if group.state is GroupState.STABLE:
        turn.answer(parked, sync_response(group, member))
        return
    _park(turn, member, parked)
    if placement is not None:
        _become_stable(turn, request.assignments, placement)


def _check_protocol(group: Group, request: SyncRequest) -> None:
    """A sync that names its protocol names the present one (KIP-559)."""
    for field, given, present in (
        ("protocol_type", request.protocol_type, group.protocol_type),
        ("protocol_name", request.protocol_name, group.header.protocol_name),
    ):
        if given is not None and given != present:
            raise RefusedError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{field} {given!r} is not the group's, {present!r}"
            )


def _park(turn: Turn, member: Member, parked: Parked) -> None:
    purgatory.refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    member.parked_sync = parked
    parked.wait()
    sessions.suspend(turn, member)


def _become_stable(turn: Turn, entries: tuple[MemberAssignment, ...], placement: Placement) -> None:
    group = turn.group
    given = {entry.member_id: entry.assignment.copy() for entry in entries}
    for member in group.members.values():
        assignment = given.get(member.id, NULL)
        if member.row.assignment != assignment:
            turn.update(member.row, assignment=assignment)
    group_states.move(turn, group_states.STABILISE)
    scheduling.put_header(turn, rebalance_on_load=scheduling.is_rebalancing_soon(group))
    assignments.follow(group, placement)
    ownership.follow_assignment(turn)
    lost_workers.given_back(turn)
    rebalance.complete_round(turn, placement.anew)
    for member in group.members.values():
        parked, member.parked_sync = member.parked_sync, None
        if parked is not None:
            turn.answer(parked, sync_response(group, member))
            sessions.renew(turn, member)
