"""From tasks by name to tasks by number, and back: what assignors that keep tasks where they are share."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from assignors.balancing import Lot
from assignors.eligibility import Eligibility
from assignors.holders import holders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task
    from assignors.eligibility import Members

Decision: TypeAlias = "Callable[[Sequence[Lot], list[int]], None]"
"""Sets how many tasks of each lot each member gets, given what each has to run besides."""


def deal(
    members: Sequence[Member],
    tasks: Sequence[Task],
    current: Mapping[str, Sequence[str]],
    decide: Decision,
) -> Assignment:
    """Give each member as many tasks as `decide` says, those it has before any other.

    Members and tasks are put in order first, so that a group gets the same answer in whatever order it comes.
    """
    ordered = sorted(members, key=attrgetter("member_id"))
    index = {member.member_id: at for at, member in enumerate(ordered)}
    held_by = {name: index[member_id] for name, member_id in holders(ordered, current).items()}
    given: list[list[str]] = [[] for _ in ordered]
    piles = []
    for eligible, group in Eligibility(ordered).groups(tasks):
        if len(eligible) == 1:
            given[eligible[0]] += [task.name for task in group]
        else:
            piles.append(_Pile(eligible, group, held_by, len(ordered)))
    decide([pile.lot for pile in piles], [len(names) for names in given])
    for pile in piles:
        pile.give_out(given)
    return {member.member_id: sorted(names) for member, names in zip(ordered, given, strict=True)}


class _Pile:
    """Tasks that the same members may run, by the member that has them; `lot` is how many there are."""

    def __init__(
        self, eligible: Members, tasks: Sequence[Task], held_by: Mapping[str, int], size: int
    ) -> None:
        self._held: list[list[str]] = [[] for _ in range(size)]
        self._loose: list[str] = []
        may_run = set(eligible)
        for task in tasks:
            holder = held_by.get(task.name)
            (self._held[holder] if holder in may_run else self._loose).append(task.name)
        self.lot = Lot(eligible, len(tasks), [len(names) for names in self._held])

    def give_out(self, given: list[list[str]]) -> None:
        """Add to `given` as many tasks as `lot.counts` says."""
        counts = self.lot.counts
        for member, names in enumerate(self._held):
            given[member] += names[: counts[member]]
            self._loose += names[counts[member] :]
        loose = iter(self._loose)
        for member in self.lot.eligible:
            lacking = counts[member] - len(self._held[member])
            given[member] += [next(loose) for _ in range(lacking)]
