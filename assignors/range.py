"""Neighbours stay together: each member gets tasks that follow one another by name."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from assignors.base import Assignment, Assignor, Member, Task, in_order
from assignors.eligibility import Eligibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RangeAssignor(Assignor):
    """Kafka's range assignor, with tasks for partitions: tasks by name, cut into one stretch for each member.

    Good for tasks whose names are sorted by what they share, as `orders-00` to `orders-99` with one cache a
    worker, and for whoever wants to know from the names alone who runs what. It moves much: every member that
    comes or goes shifts the stretches of all.

    Tasks that the same members are eligible for are cut by themselves. Stretches of one cut differ by at most
    one; who gets one more is whoever has the fewest tasks so far, narrow cuts first, and then the first (in
    Kafka always the first, which piles up on them). So without pins and labels it is Kafka's very assignment.
    """

    name = "range"

    def assign(
        self,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - names alone decide
    ) -> Assignment:
        """Cut; `current` plays no part."""
        ordered = in_order(members)
        given: list[list[str]] = [[] for _ in ordered]
        for eligible, group in Eligibility(ordered).groups(tasks):
            names = iter(task.name for task in group)
            for member, length in zip(eligible, _lengths(len(group), eligible, given), strict=True):
                given[member] += islice(names, length)
        return {member.member_id: names for member, names in zip(ordered, given, strict=True)}


def _lengths(amount: int, eligible: Sequence[int], given: Sequence[Sequence[str]]) -> list[int]:
    """How many of `amount` tasks each of `eligible` gets."""
    share, over = divmod(amount, len(eligible))
    favoured = set(sorted(range(len(eligible)), key=lambda at: len(given[eligible[at]]))[:over])
    return [share + (at in favoured) for at in range(len(eligible))]
