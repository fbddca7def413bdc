"""Which assignors the members of a group announce, and which they could choose (protocol §4, §5)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from protocol.messages.assignors import AnnouncedAssignor, GroupAssignors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.group import Group
    from manager.core.rows import GroupRow
    from protocol.messages.membership import Protocol


def assignors_of(group: Group) -> GroupAssignors:
    """Of a group in memory."""
    return announced(group.header, [member.row.protocols for member in group.members.values()])


def announced(header: GroupRow, lists: Sequence[Sequence[Protocol]]) -> GroupAssignors:
    """Of a group whose members announce these lists, the most announced first."""
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
