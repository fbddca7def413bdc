"""Levels work against capacity, and moves a task only if that pays.

The work that a task is, its *size*, is told in `assignors.sizes`. The *height* of a member is the work it has
over its capacity. A task is *kept* by the member that has it already; elsewhere it is *moving*: it has to be
started anyway, wherever that is.

**The rule.** A moving task goes where it stands lower: from member i to k if `height(k) + size / capacity(k)`
is below `height(i)`. A kept task may do so only if its member is *due*: if it has a task that moving would
get below `(1 - margin) * height(i)`. So a move must pay, by the margin. But what is due is then levelled all
the way, not only back to the margin, or the next small change would move something again.

**How it is followed.** Tasks that nobody has are placed first. Then rounds: who is due is found out, and as
long as anybody can be relieved, the highest member gives a task to whoever would stand lowest with it. The
largest one goes that does not lift its taker above its giver; moving ones first, since they cost nothing.

**What is promised.** Let i be any member, s the size of any task on it, k any member that may run that task,
c(i) and c(k) their capacities; let f be 1 for a moving task and `1 - margin` for a kept one.

1. *Nobody can relieve anybody*: `f * height(i) <= height(k) + s / c(k)`. No round is the last one before
   this holds. And there is a last one: every move leaves both its members lower than the higher of them was,
   so the heights in descending order get less in the order of a dictionary, and as sizes are whole numbers
   there are only finitely many to come.
2. *No member is far above the mean*: if all M members may run it, `f * height(i) <= (W + (M - 1) * s) / C`,
   W being all work and C all capacity: multiply (1) by c(k) and add it up over all k, for i itself without s.
   With s the smallest such task of i that is the mean and less than one small task, over f. In no assignment
   is the highest member below W / C or s / max(c), so it is here within `(1 + (M - 1) * max(c) / C) / f`
   of the best there is; if capacities are equal, that is `(2 - 1 / M) / f`. A member that has only tasks
   pinned to it is no lower in any assignment.
3. *From scratch*, if nobody has anything and all may run everything, the largest task goes first, each to the
   best offer. That is LPT: for equal capacities within `4/3 - 1/(3 M)` of the best there is (Graham, 1969).
4. *Noise moves nothing*: once (1) holds with f = 1, as it does from scratch and between members one of which
   was due, sizes may be off by any factors between 1 - e and 1 + e, `e <= margin / (2 - margin)`, and
   nothing is due: `height'(k) + s'/c(k) >= (1 - e) * height(i) >= (1 - e) / (1 + e) * height'(i)`.
5. Where eligibility differs from task to task, (1) is all that is promised. It is about pairs of members: a
   move that would help only by making room for another one is not looked for.

Capacities within a sixteenth of each other may be taken for alike (`assignors.offers`); where they are not
equal, s counts that much more in (1).

Moves are the fewest if all sizes and all capacities are equal. In general, to find the fewest is as hard as
packing bins; a test holds this way against the fewest.

**What it costs.** O(N log M) for N tasks: each one looks at one member of each class of capacities.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from assignors.base import Assignment, Assignor, Member, Task, holders
from assignors.eligibility import Eligibility
from assignors.offers import Loads, Offers
from assignors.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assignors.eligibility import Members

SizedTask: TypeAlias = tuple[int, str]
"""A task: its size, then its name."""


class WeightedAssignor(Assignor):
    """Gives each member work in proportion to its capacity, and moves a task only if that pays."""

    name = "weighted"
    margin: ClassVar[float] = 0.2
    """A move pays if it gets a task this much lower, as a share of how high its member stands.

    So sizes may be 11 % off, upwards or downwards, and nothing moves: `margin / (2 - margin)`. A subclass may
    have another margin, from 0 to below 1.
    """

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        """Keep, place what nobody has, and relieve whoever is due."""
        ordered = sorted(members, key=attrgetter("member_id"))
        loads = Loads([member.capacity for member in ordered])
        lots = _lots(ordered, tasks, current, loads)
        for lot in lots:
            lot.place()
        _Relief(lots, loads, self.margin).relieve()
        return {
            member.member_id: sorted(name for lot in lots for name in lot.names(at))
            for at, member in enumerate(ordered)
        }


def _lots(
    members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]], loads: Loads
) -> list[_SizedLot]:
    """The tasks by who may run them, those with the least choice first."""
    index = {member.member_id: at for at, member in enumerate(members)}
    held_by = {name: index[member_id] for name, member_id in holders(members, current).items()}
    size = sizes(tasks)
    return [
        _SizedLot(eligible, sorted((size[task.name], task.name) for task in group), held_by, loads)
        for eligible, group in Eligibility(members).groups(tasks)
    ]


class _SizedLot:
    """Tasks that the same members may run; `kept` and `moving` say which of them each member has, rising.

    `due` are the members that are to be relieved of kept ones, `takers` those that may be given them.
    """

    def __init__(
        self, eligible: Members, tasks: Sequence[SizedTask], held_by: Mapping[str, int], loads: Loads
    ) -> None:
        self.eligible = eligible
        self.kept: defaultdict[int, list[SizedTask]] = defaultdict(list)
        self.moving: defaultdict[int, list[SizedTask]] = defaultdict(list)
        self.offers = Offers(eligible, loads)
        self.due: set[int] = set()
        self.takers: Offers | None = None
        self._loads = loads
        self._unplaced: list[SizedTask] = []
        may_run = set(eligible)
        self._holders = {name: held_by[name] for _, name in tasks if held_by.get(name) in may_run}
        for size, name in tasks:
            holder = self._holders.get(name)
            if holder is None:
                self._unplaced.append((size, name))
            else:
                self.kept[holder].append((size, name))
                loads.work[holder] += size

    def place(self) -> None:
        """Give every task that nobody has to the best offer, the largest first."""
        for size, name in reversed(self._unplaced):
            _, taker = self.offers.best(size)
            self.moving[taker].append((size, name))
            self._loads.work[taker] += size
        for tasks in self.moving.values():
            tasks.sort()

    def find_due(self, margin: float) -> None:
        """Find who is due, and by whom it may be relieved."""
        self.due = {member for member in self.eligible if self._is_due(member, margin)}
        self.takers = self._find_takers(margin) if self.due else None

    def add(self, member: int, task: SizedTask) -> None:
        """`member` has `task` from now on."""
        where = self.kept if self._holders.get(task[1]) == member else self.moving
        insort(where[member], task)

    def names(self, member: int) -> Iterator[str]:
        """The tasks that `member` has."""
        return (name for tasks in (self.kept, self.moving) for _, name in tasks.get(member, ()))

    def _is_due(self, member: int, margin: float) -> bool:
        if not (kept := self.kept.get(member)):
            return False
        return self.offers.best(kept[0][0])[0] < (1 - margin) * self._loads.height(member)

    def _find_takers(self, margin: float) -> Offers:
        size = min(self.kept[member][0][0] for member in self.due)
        limit = (1 - margin) * max(map(self._loads.height, self.due))
        return Offers((k for k in self.eligible if self._loads.height(k, size) < limit), self._loads)


class _Move(NamedTuple):
    """A task of `lot` goes from one member to another; the best of several is the greatest."""

    is_moving: bool
    size: int
    name: str
    giver: int
    taker: int
    lot: _SizedLot


class _Relief:
    """Relieves who is due."""

    def __init__(self, lots: Sequence[_SizedLot], loads: Loads, margin: float) -> None:
        self._lots = lots
        self._loads = loads
        self._margin = margin
        self._lots_of: defaultdict[int, list[_SizedLot]] = defaultdict(list)
        for lot in lots:
            for member in lot.eligible:
                self._lots_of[member].append(lot)

    def relieve(self) -> None:
        """Move tasks until nobody can relieve anybody any more."""
        while self._go_round():
            pass

    def _go_round(self) -> bool:
        """Relieve, the highest first, until nobody who was due at first can be; whether anything moved."""
        for lot in self._lots:
            lot.find_due(self._margin)
        heights = [(-self._loads.height(member), member) for member in self._lots_of]
        heapify(heights)
        moved = False
        while heights:
            height, giver = heappop(heights)
            if -height != self._loads.height(giver):
                continue
            if move := max(self._moves(giver), default=None, key=lambda move: move[:3]):
                self._make(move)
                moved = True
                for member in (giver, move.taker):
                    heappush(heights, (-self._loads.height(member), member))
        return moved

    def _moves(self, giver: int) -> Iterator[_Move]:
        """The best move of a moving and of a kept task of each lot that would relieve `giver`."""
        for lot in self._lots_of[giver]:
            if moving := lot.moving.get(giver):
                yield from self._move(lot, giver, moving, lot.offers)
            if lot.takers and giver in lot.due and (kept := lot.kept.get(giver)):
                yield from self._move(lot, giver, kept, lot.takers)

    def _move(
        self, lot: _SizedLot, giver: int, tasks: Sequence[SizedTask], offers: Offers
    ) -> Iterator[_Move]:
        """The largest of `tasks` that does not lift its taker above its giver, else the smallest."""
        loads = self._loads
        height = loads.height(giver)
        offer, taker = offers.best(tasks[0][0])
        if offer >= height:
            return
        level = (loads.work[giver] + loads.work[taker]) / (loads.capacities[giver] + loads.capacities[taker])
        amount = int((height - level) * loads.capacities[giver])
        at = max(bisect_right(tasks, amount, key=lambda task: task[0]) - 1, 0)
        yield _Move(offers is lot.offers, *tasks[at], giver, taker, lot)

    def _make(self, move: _Move) -> None:
        lot, task = move.lot, (move.size, move.name)
        given = (lot.moving if move.is_moving else lot.kept)[move.giver]
        del given[bisect_left(given, task)]
        self._loads.work[move.giver] -= move.size
        self._loads.work[move.taker] += move.size
        lot.add(move.taker, task)
        for each in self._lots_of[move.giver]:
            each.offers.sank(move.giver)
            if each.takers:
                each.takers.sank(move.giver)
