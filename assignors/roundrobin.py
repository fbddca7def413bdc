"""Deals the tasks out in turn, whoever had them before."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from assignors.base import Assignment, Assignor, Member, Task, in_order
from assignors.eligibility import Eligibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RoundRobinAssignor(Assignor):
    """Tasks by name to members in order, one each in turn.

    Tasks that the same members are eligible for are dealt in a round of their own. So what differs by at
    most one is how many tasks of one round two members get, and without pins and labels how many in all.
    """

    name = "roundrobin"

    def assign(
        self,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - what keeps it simple, and makes it move much
    ) -> Assignment:
        """Deal; `current` plays no part."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        for eligible, group in Eligibility(ordered).groups(tasks):
            for turn, task in zip(cycle(eligible), group, strict=False):
                assignment[ordered[turn].member_id].append(task.name)
        return assignment
