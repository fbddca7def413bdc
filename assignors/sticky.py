"""Moves as little as it can: as level in number as can be, with the fewest possible moves.

Every task counts the same; weights play no part. Tasks that the same members may run are a lot, of which only
numbers count (`assignors.dealing`).

**What is promised.** (1) The sum of the squares of all loads is the least possible. That is as level as loads
can be: the largest is the least possible, then the next, and so on; if everybody may run everything,
no two differ by more than one. (2) Among all outcomes like that, the fewest tasks move.

**Why it holds.** Tasks flow from lots to members at convex costs: squares of loads first, moves second. Such
a flow is optimal if and only if no cycle of reassignments lowers its cost. We start where every task stays
where it is, which no cycle among moves alone can better, and follow the steepest cycle until there is none.
A cycle takes a task off one member, lets others swap one for another, and puts one on a last member. Being
a shortest path between the two, it leaves no cycle among moves alone behind (successive shortest paths).

**What it costs.** A single lot is poured at once: O(M log M) for M members. Of several lots each step costs
O(M x lots) and moves many tasks; there are about as many steps as members whose load has to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.base import Assignment, Assignor, Member, Task
from assignors.dealing import deal, top_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.dealing import Lot


class StickyAssignor(Assignor):
    """Levels the number of tasks and leaves every task it can where it is."""

    name = "sticky"

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Keep, level, and give out what is left."""
        return deal(members, tasks, current, _balance)


def _balance(lots: Sequence[Lot], loads: list[int]) -> None:
    """Set the `counts` of all `lots` as promised above; `loads` is what each member has to run besides."""
    if len(lots) == 1:
        lots[0].fill(lots[0].amount, lots[0].held, loads)
    elif lots:
        top_up(lots, loads)
        shifts = _Shifts(lots, loads)
        while shifts.make_one():
            pass


class _Shifts:
    """The steepest cycles, one after another.

    A cost is one number: what it does to the sum of squares, times a weight that no number of moves
    outweighs, plus the moves. `_cost[m]` is the least cost of taking a task off some member and,
    by swaps, ending with one too many at m; `_last[m]` is the last swap on the way, None if m is that member.
    """

    def __init__(self, lots: Sequence[Lot], loads: list[int]) -> None:
        self._lots = lots
        self._loads = loads
        self._mean, rest = divmod(sum(loads), len(loads))
        self._mean_up = self._mean + (rest > 0)
        self._weight = len(lots) + 1
        self._cost: list[int] = []
        self._last: list[tuple[Lot, int] | None] = []

    def make_one(self) -> bool:
        """Follow one cycle; False if none lowers the cost."""
        self._search()
        closed = [
            cost + self._weight * (2 * load + 1) for cost, load in zip(self._cost, self._loads, strict=True)
        ]
        taker = min(range(len(closed)), key=closed.__getitem__)
        if closed[taker] >= 0:
            return False
        self._follow(taker)
        return True

    def _search(self) -> None:
        """Find the cheapest way to each member (Bellman and Ford's, from all members at once)."""
        self._cost = [self._weight * (1 - 2 * load) for load in self._loads]
        self._last = [None] * len(self._loads)
        while sum(self._relax(lot) for lot in self._lots):  # every lot in turn, not the first again and again
            pass

    def _relax(self, lot: Lot) -> bool:
        """Whether a task of `lot` makes the way to some member cheaper."""
        cost, counts, held = self._cost, lot.counts, lot.held
        givers = [member for member in lot.eligible if counts[member]]
        if not givers:
            return False
        giver = min(givers, key=lambda member: cost[member] + (counts[member] <= held[member]))
        taken = cost[giver] + (counts[giver] <= held[giver])
        better = [m for m in lot.eligible if taken - (counts[m] < held[m]) < cost[m]]
        for member in better:
            cost[member] = taken - (counts[member] < held[member])
            self._last[member] = (lot, giver)
        return bool(better)

    def _follow(self, taker: int) -> None:
        """Shift tasks along the way to `taker`, as many as cost the same and help."""
        way: list[tuple[Lot, int, int]] = []
        source = taker
        while step := self._last[source]:
            lot, giver = step
            way.append((lot, giver, source))
            source = giver
        amount = min(self._wanted(source, taker), *(_available(*step) for step in way))
        for lot, giver, receiver in way:
            lot.counts[giver] -= amount
            lot.counts[receiver] += amount
        self._loads[source] -= amount
        self._loads[taker] += amount

    def _wanted(self, source: int, taker: int) -> int:
        """How many tasks bring both towards the mean of all, or each other; one at least."""
        giving, taking = self._loads[source], self._loads[taker]
        return max(1, min(giving - self._mean_up, self._mean - taking), (giving - taking) // 2)


def _available(lot: Lot, giver: int, receiver: int) -> int:
    """How many tasks of `lot` can go from one to the other before the next would cost more."""
    given = lot.counts[giver] - lot.held[giver]
    missing = lot.held[receiver] - lot.counts[receiver]
    return min(given if given > 0 else lot.counts[giver], missing if missing > 0 else lot.amount)
