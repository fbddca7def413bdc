"""From tasks by name to tasks by number, and back: what assignors that keep tasks where they are share.

Tasks that the same members may run are alike, so what is decided is only how many of them each member gets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from assignors.base import holders
from assignors.eligibility import Eligibility

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task
    from assignors.eligibility import Members


@dataclass(slots=True)
class Lot:
    """`amount` tasks that all of `eligible` may run.

    `held` says how many of them each member has now, `counts` how many it is to have; both have an entry for
    every member of the group.
    """

    eligible: Members
    amount: int
    held: list[int]
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.held)

    def fill(self, amount: int, wanted: Sequence[int], loads: list[int]) -> None:
        """Give `amount` more of the tasks to the least loaded members; `loads` grows by what each gets."""
        shares = pour(amount, [loads[m] for m in self.eligible], [wanted[m] for m in self.eligible])
        for member, share in zip(self.eligible, shares, strict=True):
            self.counts[member] += share
            loads[member] += share


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
    """The names of a lot's tasks, by the member that has them.

    Who has to give some up gives those up that it has had for the shortest time. So when all members are
    restarted in turn, each takes back what had to leave it, and hardly any moves a third time.
    """

    def __init__(
        self, eligible: Members, tasks: Sequence[Task], held_by: Mapping[str, int], size: int
    ) -> None:
        self._held: list[list[str]] = [[] for _ in range(size)]
        self._loose: list[str] = []
        may_run = set(eligible)
        for task in sorted(tasks, key=attrgetter("token")):
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


def top_up(lots: Sequence[Lot], loads: list[int]) -> None:
    """The decision by which nothing moves; what nobody has goes to the least loaded."""
    for lot in lots:
        lot.counts[:] = lot.held
        for member in lot.eligible:
            loads[member] += lot.held[member]
    for lot in lots:
        lot.fill(lot.amount - sum(lot.held), [0] * len(loads), loads)


def pour(amount: int, loads: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """How to add `amount` units to `loads`, as water fills a vessel: as level as possible, none taken away.

    Whoever gets anything ends within one of the others that do, and nobody who gets less stands lower. Where
    that leaves a choice of who gets one more, it falls on those that want it, then on the first.

    Args:
        amount: units to add, at least 0.
        loads: what each has already; not empty.
        wanted: how many of the units each would rather have than not. They get as many of these in all as
            any result so level could give them.

    Returns:
        The units each gets.
    """
    level, extra = _surface(amount, sorted(loads))
    shares = [max(0, level - load) for load in loads]
    low = [index for index, load in enumerate(loads) if load <= level]
    low.sort(key=lambda index: wanted[index] <= shares[index])
    for index in low[:extra]:
        shares[index] += 1
    return shares


def _surface(amount: int, rising: Sequence[int]) -> tuple[int, int]:
    """The level up to which `amount` fills everything, and what is left over then."""
    below = 0
    for width, load in enumerate(rising):
        if width * load - below > amount:
            break
        below += load
    else:
        width = len(rising)
    return divmod(amount + below, width)
