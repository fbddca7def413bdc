"""Heartbeats, plain and held (protocol §3.3, §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, purgatory, sessions

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.turn import Turn
    from protocol.messages.membership import HeartbeatRequest


def heartbeat(turn: Turn, request: HeartbeatRequest, parked: Parked) -> None:
    """Renew the session; answer at once, or hold the answer until something concerns the member."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    sessions.request_accepted(turn, member, parked)
    checks.stable(group)
    purgatory.answer_heartbeat(turn, member)
    wait_ms = member.held_for_ms(request.wait_ms)
    if not wait_ms or _has_missed_something(group, member, request):
        turn.answer(parked, purgatory.heartbeat_response(group, member))
        return
    member.held_heartbeat = parked
    parked.wait()
    group.timers.set(purgatory.held_key(member), turn.now + wait_ms)


def _has_missed_something(group: Group, member: Member, request: HeartbeatRequest) -> bool:
    seen = request.tasks_revision
    return (seen is not None and seen < member.concern_revision) or (
        request.told != group.tasks.told(member.id)
    )


def wait_over(turn: Turn, member_id: str) -> None:
    """A held heartbeat was held long enough."""
    purgatory.answer_heartbeat(turn, turn.group.members[member_id])
