"""Tasks of different sizes on members of different capacities: kept where they are while that pays.

The *height* of a member is the work it has over its capacity. A task is *at home* on the member that has it
already, and *loose* elsewhere: it has to be started anyway, wherever that is.

**The rule.** A loose task goes where it stands lower: from member i to k if `height(k) + size / capacity(k)`
is below `height(i)`. A task at home may do so only if its member is *due*: if it has a task that moving would
get below `(1 - margin) * height(i)`. So a move must pay, by the margin. But what is due is then levelled all
the way, not only back to the margin, or the next small change would move something again.

**What is promised.** Let i be any member, s the size of any task on it, k any member that may run that task,
c(i) and c(k) their capacities; let f be 1 for a loose task and `1 - margin` for one at home.

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
3. *From scratch*, if nothing is at home and all may run everything, the largest task goes first, each to the
   best offer. That is LPT: for equal capacities within `4/3 - 1/(3 M)` of the best there is (Graham, 1969).
4. *Noise moves nothing*: once (1) holds with f = 1, as it does from scratch and between members one of which
   was due, sizes may be off by any factors between 1 - e and 1 + e, `e <= margin / (2 - margin)`, and
   nothing is due: `height'(k) + s'/c(k) >= (1 - e) * height(i) >= (1 - e) / (1 + e) * height'(i)`.
5. Where eligibility differs from task to task, (1) is all that is promised. It is about pairs of members: a
   move that would help only by making room for another one is not looked for.

Capacities within a sixteenth of each other may be taken for alike (`assignors.offers`); where they are not
equal, s counts that much more in (1).

Moves are the fewest if all sizes and all capacities are equal. In general, to find the fewest is as hard as
packing bins; the largest task that does not overshoot goes first, which a test holds against the fewest.

**What it costs.** O(N log M) for N tasks: each one looks at one member of each class of capacities.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from assignors.offers import Offers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from assignors.eligibility import Members
    from assignors.offers import Loads

Sized: TypeAlias = tuple[int, str]
"""A task: its size, then its name."""


class Kin:
    """Tasks that the same members may run; `at_home` and `loose` say which of them each member has, rising.

    `givers` and `takers` are the members that are due, and those that may relieve them.
    """

    def __init__(
        self, eligible: Members, tasks: Iterable[Sized], homes: Mapping[str, int], loads: Loads
    ) -> None:
        self.eligible = eligible
        self.homes = homes
        self.at_home: defaultdict[int, list[Sized]] = defaultdict(list)
        self.loose: defaultdict[int, list[Sized]] = defaultdict(list)
        self.homeless: list[Sized] = []
        self.offers = Offers(eligible, loads)
        self.givers: set[int] = set()
        self.takers: Offers | None = None
        self._loads = loads
        for task in sorted(tasks):
            home = homes.get(task[1])
            (self.homeless if home is None else self.at_home[home]).append(task)
        for member, kept in self.at_home.items():
            loads.work[member] += sum(size for size, _ in kept)

    def find_due(self, margin: float) -> None:
        """Find who is due, and by whom it may be relieved."""
        self.givers = {member for member in self.eligible if self._is_due(member, margin)}
        self.takers = self._find_takers(margin) if self.givers else None

    def add(self, member: int, task: Sized) -> None:
        """`member` has `task` from now on."""
        where = self.at_home if self.homes.get(task[1]) == member else self.loose
        insort(where[member], task)

    def _is_due(self, member: int, margin: float) -> bool:
        if not (kept := self.at_home.get(member)):
            return False
        return self.offers.best(kept[0][0])[0] < (1 - margin) * self._loads.height(member)

    def _find_takers(self, margin: float) -> Offers:
        size = min(self.at_home[member][0][0] for member in self.givers)
        limit = (1 - margin) * max(map(self._loads.height, self.givers))
        return Offers((k for k in self.eligible if self._loads.height(k, size) < limit), self._loads)


class Move(NamedTuple):
    """A task of `kin` goes from one member to another; the best of several is the largest.

    A task that is loose already moves for nothing.
    """

    is_loose: bool
    size: int
    name: str
    giver: int
    taker: int
    kin: Kin


class Relief:
    """Places what is homeless and relieves who is due."""

    def __init__(self, kins: Sequence[Kin], loads: Loads, margin: float) -> None:
        self._kins = kins
        self._loads = loads
        self._margin = margin
        self._kins_of: defaultdict[int, list[Kin]] = defaultdict(list)
        for kin in kins:
            for member in kin.eligible:
                self._kins_of[member].append(kin)

    def place(self) -> None:
        """Give every homeless task to the best offer: kin with the least choice first, then the largest."""
        for kin in self._kins:
            for task in reversed(kin.homeless):
                _, taker = kin.offers.best(task[0])
                kin.loose[taker].append(task)
                self._loads.work[taker] += task[0]
            for tasks in kin.loose.values():
                tasks.sort()

    def relieve(self) -> None:
        """Move tasks until nobody can relieve anybody any more."""
        while self._go_round():
            pass

    def _go_round(self) -> bool:
        """Relieve, the highest first, until nobody who was due at first can be; whether anything moved."""
        for kin in self._kins:
            kin.find_due(self._margin)
        heights = [(-self._loads.height(member), member) for member in self._kins_of]
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

    def _moves(self, giver: int) -> Iterator[Move]:
        """A move for each kind of task that would relieve `giver`."""
        for kin in self._kins_of[giver]:
            if (loose := kin.loose.get(giver)) and (move := self._move(loose, giver, kin.offers)):
                yield Move(True, *move, kin)  # noqa: FBT003 - a field of a tuple
            at_home = kin.at_home.get(giver) if giver in kin.givers else None
            if at_home and kin.takers and (move := self._move(at_home, giver, kin.takers)):
                yield Move(False, *move, kin)  # noqa: FBT003 - likewise

    def _move(self, tasks: Sequence[Sized], giver: int, offers: Offers) -> tuple[int, str, int, int] | None:
        """The largest of `tasks` that does not lift its taker above its giver, else the smallest."""
        loads = self._loads
        height = loads.height(giver)
        offer, taker = offers.best(tasks[0][0])
        if offer >= height:
            return None
        level = (loads.work[giver] + loads.work[taker]) / (loads.capacities[giver] + loads.capacities[taker])
        amount = int((height - level) * loads.capacities[giver])
        at = max(bisect_right(tasks, amount, key=lambda task: task[0]) - 1, 0)
        return *tasks[at], giver, taker

    def _make(self, move: Move) -> None:
        kin, task = move.kin, (move.size, move.name)
        given = (kin.loose if move.is_loose else kin.at_home)[move.giver]
        del given[bisect_left(given, task)]
        self._loads.work[move.giver] -= move.size
        self._loads.work[move.taker] += move.size
        kin.add(move.taker, task)
        for each in self._kins_of[move.giver]:
            each.offers.sank(move.giver)
            if each.takers:
                each.takers.sank(move.giver)
