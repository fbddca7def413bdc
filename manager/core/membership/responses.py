"""Answers that more than one rule gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.tasks import offers
from protocol.messages.membership import JoinedMember, JoinResponse, SyncResponse
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member


def join_response(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinResponse:
    """What a member learns of the present generation; the leader learns of all members and tasks."""
    leads = group.is_leader(member)
    is_told = leads and group.protocol_type == PROTOCOL_TYPE
    page = offers.first(group, member) if is_told else None
    return JoinResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.header.protocol_name,
        leader_id=group.leader_id or "",
        member_id=member.id,
        skip_assignment=skip_assignment,
        members=_roster(group) if leads else (),
        tasks=page.tasks if page is not None else msgspec.UNSET,
        more=page.more if page is not None else msgspec.UNSET,
    )


def sync_response(group: Group, member: Member) -> SyncResponse:
    """The stored assignment of `member`."""
    return SyncResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.header.protocol_name,
        assignment=member.row.assignment,
    )


def _roster(group: Group) -> tuple[JoinedMember, ...]:
    chosen = group.header.protocol_name
    return tuple(
        JoinedMember(
            m.id, m.row.instance_id, m.metadata_for(chosen), draining=m.row.draining or msgspec.UNSET
        )
        for m in group.members.values()
    )
