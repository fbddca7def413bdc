"""Room for tasks on members that are given only so many: where one fits, and what would have to move for it.

Every task is placed that can be: each step is a shortest augmenting path of the matching of tasks and seats.
A path costs the running tasks that it moves, then its length. So nothing that runs is moved for a task that
fits without.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from assignors.base import Member
    from assignors.eligibility import Members

_Steps: TypeAlias = "dict[int, tuple[int, str]]"
"""For each member: from which one a task would come to it, and which task."""


class Seating:
    """What each member is given, never more than its `max_tasks` from what is seated here.

    Args:
        members: told by their index from here on.
        able: which members may run a task, by its name.
        given: what each member has already, by its index, within its limit.

    `moved` says whether any of that had to make way.
    """

    def __init__(
        self, members: Sequence[Member], able: Mapping[str, Members], given: Mapping[int, Iterable[str]]
    ) -> None:
        self._members = members
        self._able = able
        self._home = {name: at for at, member in enumerate(members) for name in member.owned}
        self._seated: list[dict[Members, set[str]]] = [{} for _ in members]
        self._counts = [0] * len(members)
        self.moved = False
        for at, names in given.items():
            for name in names:
                self._sit(name, at)

    def names(self, at: int) -> list[str]:
        """What a member is given, by name."""
        return sorted(name for alike in self._seated[at].values() for name in alike)

    def seat(self, names: Iterable[str]) -> None:
        """Give each of `names` to somebody who may run it, as far as that can be done."""
        homeless = [name for name in sorted(names) if not self._seat_at_home(name)]
        alike: dict[Members, list[str]] = {}
        for name in homeless:
            alike.setdefault(self._able[name], []).append(name)
        groups = sorted(alike.items(), key=lambda item: (len(item[0]), item[0]))
        left = [(able, self._seat_where_free(able, group)) for able, group in groups]
        for able, group in left:
            self._seat_with_moves(able, group)

    def _seat_at_home(self, name: str) -> bool:
        home = self._home.get(name)
        fits = home is not None and home in self._able[name] and self._has_room(home)
        if home is not None and fits:
            self._sit(name, home)
        return fits

    def _seat_where_free(self, able: Members, names: Sequence[str]) -> list[str]:
        """Seat tasks on the members of `able` that have the fewest and room; what is left has none there."""
        free = [(self._counts[at], at) for at in able if self._has_room(at)]
        heapify(free)
        for nth, name in enumerate(names):
            if not free:
                return list(names[nth:])
            at = free[0][1]
            self._sit(name, at)
            if self._has_room(at):
                heapreplace(free, (self._counts[at], at))
            else:
                heappop(free)
        return []

    def _seat_with_moves(self, able: Members, names: Iterable[str]) -> None:
        for name in names:
            if (at := self._make_room(able)) is None:
                return  # where there is no way for one, there is none for those that are alike
            self._sit(name, at)

    def _make_room(self, able: Members) -> int | None:
        """Move tasks along the cheapest way, so that a member of `able` has room; None if there is no way."""
        cost, steps = dict.fromkeys(able, 0), dict[int, tuple[int, str]]()
        ways = [(0, at) for at in able]
        while ways:
            price, at = heappop(ways)
            if price > cost[at]:
                continue
            if self._has_room(at):
                return self._follow(at, steps)
            for name in map(self._cheapest_of(at), self._seated[at].values()):
                onward = price + self._price(name, at)
                for to in self._able[name]:
                    if onward < cost.get(to, onward + 1):
                        cost[to], steps[to] = onward, (at, name)
                        heappush(ways, (onward, to))
        return None

    def _follow(self, at: int, steps: _Steps) -> int:
        while at in steps:
            giver, name = steps[at]
            self.moved = True
            self._leave(name, giver)
            self._sit(name, at)
            at = giver
        return at

    def _cheapest_of(self, at: int) -> Callable[[Iterable[str]], str]:
        return lambda names: min(names, key=lambda name: (self._price(name, at), name))

    def _price(self, name: str, at: int) -> int:
        """One for a step; more than all steps of a way for a task that runs there."""
        return 1 + (self._home.get(name) == at) * len(self._members)

    def _has_room(self, at: int) -> bool:
        limit = self._members[at].max_tasks
        return limit is None or self._counts[at] < limit

    def _sit(self, name: str, at: int) -> None:
        self._seated[at].setdefault(self._able[name], set()).add(name)
        self._counts[at] += 1

    def _leave(self, name: str, at: int) -> None:
        alike = self._seated[at][self._able[name]]
        alike.remove(name)
        if not alike:
            del self._seated[at][self._able[name]]
        self._counts[at] -= 1
