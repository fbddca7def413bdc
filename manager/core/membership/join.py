"""Join: a first contact, the confirmation of an id, a rejoin (protocol §3.1, §4; KIP-394)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, member_ids, sessions
from manager.core.member import Member, adopt, detached
from manager.core.membership import rebalance, static_members
from manager.core.membership.departure import depart
from manager.core.membership.responses import join_response
from manager.core.purgatory import park_join
from manager.core.stored_rows import MemberRow
from protocol.errors import ErrorCode, RefusedError
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from manager.settings import GroupSettings
    from protocol.messages.membership import JoinRequest


def join(turn: Turn, request: JoinRequest, parked: Parked) -> None:
    """Answer at once or park, as the rules of the group have it."""
    group = turn.group
    _check_timeouts(group.settings, request)
    checks.not_dead(group)
    if request.member_id:
        _join_again(turn, request, parked)
    else:
        _first_contact(turn, request, parked)


def _check_timeouts(settings: GroupSettings, request: JoinRequest) -> None:
    """Nobody is waited for without end; Kafka has bounds for the session only."""
    low, high = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        raise RefusedError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session_timeout_ms {request.session_timeout_ms} is not within {low} and {high}",
        )
    if request.rebalance_timeout_ms > settings.max_rebalance_timeout_ms:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"rebalance_timeout_ms {request.rebalance_timeout_ms} is above"
            f" {settings.max_rebalance_timeout_ms} (max_rebalance_timeout_ms)",
        )


def _names(request: JoinRequest) -> tuple[str, ...]:
    return tuple(protocol.name for protocol in request.protocols)


def _first_contact(turn: Turn, request: JoinRequest, parked: Parked) -> None:
    group = turn.group
    holder = group.statics.get(request.instance_id) if request.instance_id is not None else None
    old = group.members[holder] if holder is not None else None
    checks.protocols(group, request.protocol_type, _names(request), old)
    if old is not None:
        static_members.replace(turn, old, request, parked)
        return
    _check_size(group, None)
    member_id = f"{request.instance_id or request.client_id or 'member'}-{turn.new_id()}"
    if request.instance_id is None and request.require_member_id:
        member_ids.expect(turn, member_id, request.session_timeout_ms)
        raise RefusedError(
            ErrorCode.MEMBER_ID_REQUIRED, "join again with the member_id given here", member_id=member_id
        )
    _add(turn, member_id, request, parked)


def _join_again(turn: Turn, request: JoinRequest, parked: Parked) -> None:
    group = turn.group
    checks.instance(group, request.member_id, request.instance_id)
    member = group.members.get(request.member_id)
    if member is None and request.member_id not in group.outstanding:
        raise RefusedError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"no member {request.member_id!r} in group {group.name}"
        )
    checks.protocols(group, request.protocol_type, _names(request), member)
    try:
        _check_size(group, member)
    except RefusedError:
        _drop_asking(turn, request.member_id, member)
        raise
    if member is None:
        member_ids.forget(turn, request.member_id)
        _add(turn, request.member_id, request, parked)
    else:
        _rejoin(turn, member, request, parked)


def _check_size(group: Group, member: Member | None) -> None:
    """Whether there is room (KIP-389; protocol §4, Max size)."""
    limit = group.settings.group_max_size
    if limit is None or group.state is GroupState.EMPTY:
        return
    if group.state is GroupState.PREPARING_REBALANCE:
        accepted = (member is not None and member.id in group.joining) or len(group.joining) < limit
    else:
        accepted = member is not None or len(group.members) < limit
    if not accepted:
        raise RefusedError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"group {group.name} has room for {limit} members (group_max_size)",
        )


def _drop_asking(turn: Turn, member_id: str, member: Member | None) -> None:
    if member is not None:
        depart(turn, [member], "the group is full", reason="the group is full")
        return
    member_ids.forget(turn, member_id)
    rebalance.maybe_complete(turn)


def _add(turn: Turn, member_id: str, request: JoinRequest, parked: Parked) -> None:
    group = turn.group
    if not group.members:
        group.protocol_type = request.protocol_type
    group.admit(Member(row=_new_row(group, member_id, request, parked)))
    if group.delay is not None and group.delay.opener != member_id:
        group.delay.joined = True
    if group.state is not GroupState.PREPARING_REBALANCE:
        rebalance.prepare(turn, _because(turn, request, f"{member_id} joins"))
    park_join(turn, group.members[member_id], parked)
    rebalance.maybe_complete(turn)


def _new_row(group: Group, member_id: str, request: JoinRequest, parked: Parked) -> MemberRow:
    return MemberRow(
        group=group.name,
        member_id=member_id,
        position=group.next_position,
        instance_id=request.instance_id,
        client_id=request.client_id or "",
        host=parked.connection.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=detached(request.protocols),
    )


def _because(turn: Turn, request: JoinRequest, what: str) -> str:
    """The rebalance has the member's own words (KIP-800), the history what it did as well."""
    if request.reason:
        turn.note(what)
    return request.reason or what


def _rejoin(turn: Turn, member: Member, request: JoinRequest, parked: Parked) -> None:
    group = turn.group
    changed = member.row.protocols != request.protocols
    takes_more = group.state is GroupState.STABLE and member.id in group.tasks.to_come
    if group.state is GroupState.PREPARING_REBALANCE:
        why = None
    elif changed:
        why = f"{member.id} rejoins with other protocols or metadata"
    elif takes_more:
        why = f"{member.id} takes more of what is to move to it"
    elif group.state is GroupState.STABLE and group.is_leader(member):
        why = f"leader {member.id} rejoins"
    else:
        _answer_present(turn, member, request, parked)
        return
    member.row = adopt(member.row, request)
    group.count_votes(member)
    if why is not None:
        rebalance.prepare(turn, _because(turn, request, why), goes_on=takes_more)
    park_join(turn, member, parked)
    rebalance.maybe_complete(turn)


def _answer_present(turn: Turn, member: Member, request: JoinRequest, parked: Parked) -> None:
    """Nothing changed but, perhaps, a timeout: adopt it and tell the present generation."""
    row = adopt(member.row, request)
    if row != member.row:
        turn.put(row)
    sessions.request_accepted(turn, member, parked)
    turn.answer(parked, join_response(turn.group, member))
