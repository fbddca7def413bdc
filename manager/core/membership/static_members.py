"""A static member comes back under a new member id (KIP-345; protocol §4, Static replacement)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import purgatory, scheduling, sessions
from manager.core.member import Member, adopt
from manager.core.membership import rebalance
from manager.core.membership.responses import join_response
from manager.core.purgatory import park_join
from manager.core.tasks import claims, homes, ownership, probation, settling
from protocol.errors import ErrorCode
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from protocol.messages.membership import JoinRequest


def replace(turn: Turn, old: Member, request: JoinRequest, parked: Parked) -> None:
    """Put a new member in the place of `old`: same place, leadership and assignment, another id.

    In Stable nobody else notices, unless the group's protocol would change, or what the member may run: it
    has come back with other packages or labels or with room for another number of tasks, or the old one was
    drained, and the new one is not. Or the old one may have died of one of its tasks once too often, or a
    task that is to be settled has been given to nobody: then they are dealt anew. The old id is fenced at
    once.
    """
    group = turn.group
    purgatory.refuse_all(turn, old, ErrorCode.FENCED_INSTANCE_ID)
    new = _successor(turn, old, request, parked)
    are_suspected = probation.worker_died(turn, old, "it was started again before its session ended")
    _take_place(turn, old, new)
    if group.state is GroupState.STABLE and _is_as_good_as(turn, old, new):
        _slip_in(turn, new, parked)
        if are_suspected or settling.is_due(group) or homes.is_due(group, old, new):
            scheduling.rebalance_soon(turn)
        return
    if group.state is not GroupState.PREPARING_REBALANCE:
        rebalance.prepare(turn, f"static member {request.instance_id} came back")
        scheduling.outlast_a_crash(turn)
    park_join(turn, new, parked)
    rebalance.maybe_complete(turn)


def _is_as_good_as(turn: Turn, old: Member, new: Member) -> bool:
    """Whether the present assignment still is what it would be with the new member in the place of `old`."""
    group = turn.group
    stays = rebalance.choose_protocol(group) == group.header.protocol_name
    return stays and not old.row.draining and _may_run(old) == _may_run(new)


def _may_run(member: Member) -> tuple[object, ...]:
    """What says which tasks may be a worker's, and how many (protocol §5.1); nothing of others."""
    told = member.worker_metadata()
    return () if told is None else (told.labels, told.formats, told.max_tasks)


def _successor(turn: Turn, old: Member, request: JoinRequest, parked: Parked) -> Member:
    row = msgspec.structs.replace(
        adopt(old.row, request),
        member_id=f"{request.instance_id}-{turn.new_id()}",
        client_id=request.client_id or "",
        host=parked.connection.host,
        draining=False,
    )
    return Member(row=row, confirmed=old.confirmed, concern_revision=old.concern_revision)


def _take_place(turn: Turn, old: Member, new: Member) -> None:
    group = turn.group
    registry = group.tasks
    ownership.take_all(turn, old)
    registry.assigned = {t: new.id if m == old.id else m for t, m in registry.assigned.items()}
    if old.id in registry.shares:
        registry.shares[new.id] = registry.shares.pop(old.id)
    led = group.is_leader(old)
    line = [new if member is old else member for member in group.members.values()]
    if old.id in registry.to_come:
        registry.to_come[new.id] = registry.to_come.pop(old.id)
    group.timers.cancel(sessions.key(old))
    group.dismiss(old)
    group.admit(new)
    group.members = {member.id: member for member in line}
    if led:
        group.leader_id = new.id
    if old.stored is not None:
        turn.drop(old.stored)
        turn.put(new.row)
    turn.note(f"{old.id} replaced by {new.id}")


def _slip_in(turn: Turn, new: Member, parked: Parked) -> None:
    group = turn.group
    leads = group.is_leader(new)
    if leads:
        turn.update(group.header, leader_id=new.id)
    new.confirmed = True
    sessions.request_accepted(turn, new, parked)
    turn.answer(parked, join_response(group, new, skip_assignment=leads))
    claims.serve_waiting(turn)
