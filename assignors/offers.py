"""Which member would be least loaded with one more task; a heap for each class of capacity."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from math import floor, log
from typing import TYPE_CHECKING, Final, TypeAlias

from assignors.sizes import is_figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ALIKE: Final = 1 + 1 / 16
"""Capacities that differ by less than this factor may be taken for alike in the search for the best offer."""

Offer: TypeAlias = tuple[float, int]
"""How high a member would stand with one more task, and the member."""


class Loads:
    """How much work each member has, and how high it stands: its work over its capacity.

    Members are told by their index. Work is counted in whole units, so nothing hangs on the order of adding.
    """

    def __init__(self, capacities: Sequence[float]) -> None:
        self.capacities = [each if each and is_figure(each) else 1.0 for each in capacities]
        self.work = [0] * len(capacities)

    def height(self, member: int, more: int = 0) -> float:
        """How high `member` stands, or would stand with `more` work."""
        return (self.work[member] + more) / self.capacities[member]


class Offers:
    """The best offers of some members; one heap for each class of capacities that are alike.

    A heap may hold a member more than once, and lower than it stands: that is put right when it comes up. It
    must be told only of members that stand lower than before.
    """

    def __init__(self, members: Iterable[int], loads: Loads) -> None:
        self._loads = loads
        self._heaps: dict[int, list[Offer]] = {}
        for member in members:
            alike = floor(log(loads.capacities[member], ALIKE))
            self._heaps.setdefault(alike, []).append((loads.height(member), member))
        self._home = {member: heap for heap in self._heaps.values() for _, member in heap}
        for heap in self._heaps.values():
            heapify(heap)

    def best(self, size: int) -> Offer:
        """Who would stand lowest with a task of `size`, of those that stand lowest in their class."""
        loads = self._loads
        return min((loads.height(member, size), member) for member in map(self._lowest, self._heaps.values()))

    def sank(self, member: int) -> None:
        """`member` stands lower than before; it may be a stranger here."""
        if (heap := self._home.get(member)) is not None:
            heappush(heap, (self._loads.height(member), member))

    def _lowest(self, heap: list[Offer]) -> int:
        while (height := self._loads.height(heap[0][1])) != heap[0][0]:
            if height > heap[0][0]:
                heapreplace(heap, (height, heap[0][1]))
            else:
                heappop(heap)  # it is there once more, as low as it stands
        return heap[0][1]
