"""Which of the protocols that all members support a generation runs on (protocol §4, Protocol choice)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manager.core.group import Group


def choose_protocol(group: Group) -> str:
    """Each member votes for the first candidate of its own list; a tie goes to the leader's preference."""
    everybody = len(group.members)
    candidates = {name for name, votes in group.votes.items() if votes == everybody}
    ballot: Counter[str] = Counter()
    for member in group.members.values():
        ballot[next(p.name for p in member.row.protocols if p.name in candidates)] += 1
    most = max(ballot.values())
    leader = group.members[group.leader_id or next(iter(group.members))]
    return next(p.name for p in leader.row.protocols if ballot[p.name] == most)
