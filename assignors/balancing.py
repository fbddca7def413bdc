"""How many tasks of each kind each member gets: as level as eligibility allows, and with the fewest moves.

Tasks that the same members may run are alike, so all that counts is numbers: a *lot* is such a set of tasks,
`held[m]` how many of them member m has now, `counts[m]` how many it is to have.

**What is promised.** (1) The sum of the squares of all loads is the least possible. That is as level as loads
can be: the largest is the least possible, then the next, and so on; if everybody may run everything,
no two differ by more than one. (2) Among all outcomes like that, the fewest tasks move. Weights play no part.

**Why it holds.** Tasks flow from lots to members at convex costs: squares of loads first, moves second. Such
a flow is optimal if and only if no cycle of reassignments lowers its cost. We start where every task stays
where it is, which no cycle among moves alone can better, and follow the steepest cycle until there is none.
A cycle takes a task off one member, lets others swap one for another, and puts one on a last member. Being
a shortest path between the two, it leaves no cycle among moves alone behind (successive shortest paths).

**What it costs.** A single lot is poured at once: O(M log M) for M members. Of several lots each step costs
O(M x lots) and moves many tasks; there are about as many steps as members whose load has to change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assignors.levelling import pour

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assignors.eligibility import Members


@dataclass(slots=True)
class Lot:
    """`amount` tasks that all of `eligible` may run; `held` and `counts` have an entry for every member."""

    eligible: Members
    amount: int
    held: list[int]
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.held)


def balance(lots: Sequence[Lot], loads: list[int]) -> None:
    """Set the `counts` of all `lots` as promised above; `loads` is what each member has to run besides."""
    if len(lots) == 1:
        _pour(lots[0], lots[0].amount, lots[0].held, loads)
    elif lots:
        top_up(lots, loads)
        shifts = _Shifts(lots, loads)
        while shifts.make_one():
            pass


def top_up(lots: Sequence[Lot], loads: list[int]) -> None:
    """Set the `counts` of all `lots` so that nothing moves; what nobody has goes to the least loaded."""
    for lot in lots:
        lot.counts[:] = lot.held
        for member in lot.eligible:
            loads[member] += lot.held[member]
    for lot in lots:
        _pour(lot, lot.amount - sum(lot.held), [0] * len(loads), loads)


def _pour(lot: Lot, amount: int, wanted: Sequence[int], loads: list[int]) -> None:
    """Give `amount` tasks of `lot` to its members, the least loaded first."""
    shares = pour(amount, [loads[m] for m in lot.eligible], [wanted[m] for m in lot.eligible])
    for member, share in zip(lot.eligible, shares, strict=True):
        lot.counts[member] += share
        loads[member] += share


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
