"""An assignor for groups in which few workers should be busy, so that the others can be sent home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkherd import Assignment, Assignor, Eligibility, Member, Task, in_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class EldersFirst(Assignor):
    """Fills one worker after the other, three tasks a unit of capacity; the last one takes the rest."""

    name = "elders-first"

    def assign(
        self,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - who came first counts, not who had what
    ) -> Assignment:
        """Fill; `current` plays no part."""
        ordered = in_order(members)
        assignment: Assignment = {member.member_id: [] for member in ordered}
        for eligible, group in Eligibility(ordered).groups(tasks):
            for task in group:
                candidates = [ordered[at] for at in eligible]
                free = (each for each in candidates if len(assignment[each.member_id]) < 3 * each.capacity)
                assignment[next(free, candidates[-1]).member_id].append(task.name)
        return assignment
