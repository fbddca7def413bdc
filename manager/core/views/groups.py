"""Looking at groups (protocol §5, Admin endpoints)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from manager.core import checks
from manager.core.tasks import heap_shown
from protocol.messages.assignors import AnnouncedAssignor, GroupAssignors
from protocol.messages.base import NULL
from protocol.messages.groups import (
    DescribedMember,
    DescribeGroupResponse,
    GroupSummary,
    Rebalance,
    RebalanceListResponse,
)
from protocol.states import UNREADABLE, GroupState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.commands import DescribeGroup, ListRebalances
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.stored_rows import GroupRow
    from manager.core.turn import Turn
    from protocol.messages.membership import Protocol


def describe(turn: Turn, _: DescribeGroup, parked: Parked) -> None:
    """Answer with the group as it is."""
    group = turn.group
    checks.known(group)
    turn.answer(
        parked,
        DescribeGroupResponse(
            group=group.name,
            state=group.state.value,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.header.protocol_name,
            leader_id=group.leader_id,
            members=tuple(_describe_member(turn, member) for member in group.members.values()),
            tasks=len(group.tasks.definitions),
            tasks_revision=group.header.tasks_revision,
        ),
    )


def _describe_member(turn: Turn, member: Member) -> DescribedMember:
    group, row = turn.group, member.row
    return DescribedMember(
        member_id=row.member_id,
        instance_id=row.instance_id,
        client_id=row.client_id,
        host=row.host,
        metadata=member.metadata_for(group.header.protocol_name),
        assignment=row.assignment if group.state is GroupState.STABLE else NULL,
        session_timeout_ms=row.session_timeout_ms,
        last_heartbeat_ms=member.last_heartbeat_ms,
        draining=row.draining,
        resources=member.resources,
        heap_rise=heap_shown.of_member(turn, row.member_id),
    )


def summary(group: Group) -> GroupSummary:
    """The group in one line."""
    return GroupSummary(
        group=group.name,
        state=group.state.value,
        protocol_type=group.protocol_type,
        generation_id=group.generation,
        members=len(group.members),
        tasks=len(group.tasks.definitions),
    )


def unreadable(name: str) -> GroupSummary:
    """A group whose rows make no sense, in one line: its name is all that is known."""
    return GroupSummary(name, UNREADABLE, protocol_type=None, generation_id=-1, members=0, tasks=0)


def list_rebalances(turn: Turn, request: ListRebalances, parked: Parked) -> None:
    """Answer with the rebalances and the history, newest first."""
    checks.known(turn.group)
    newest = [*reversed(turn.group.rebalances)][: request.limit]
    lines = tuple(msgspec.convert(row, Rebalance, from_attributes=True) for row in newest)
    turn.answer(parked, RebalanceListResponse(rebalances=lines, history=tuple(reversed(turn.group.history))))


def assignors_of(group: Group) -> GroupAssignors:
    """Which assignors the members of a group in memory announce, and which they could choose."""
    return announced_assignors(group.header, [member.row.protocols for member in group.members.values()])


def announced_assignors(header: GroupRow, lists: Sequence[Sequence[Protocol]]) -> GroupAssignors:
    """The assignors that members announce in `lists`, the most announced first."""
    counts = Counter(name for names in lists for name in {protocol.name: None for protocol in names})
    return GroupAssignors(
        group=header.group,
        protocol_type=header.protocol_type,
        members=len(lists),
        assignors=tuple(
            AnnouncedAssignor(
                assignor=name,
                members=count,
                is_candidate=count == len(lists),
                is_chosen=name == header.protocol_name,
            )
            for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ),
    )
