"""How many tasks there is room for, by number alone: enough to see whether a member can be spared."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assignors.eligibility import Members


def placeable(amounts: Mapping[Members, int], limits: Mapping[int, int | None]) -> int:
    """How many of some tasks can be placed at once: a maximum flow from lots of them to members.

    Args:
        amounts: how many tasks there are that the same members may run.
        limits: how many each member may have, None for any number; those that are not here take no part.
    """
    free = {able for able in amounts if any(limits.get(at, 0) is None for at in able)}
    picky = sorted((able for able in amounts.keys() - free), key=lambda able: (len(able), able))
    flow = _Flow({at: limit for at, limit in limits.items() if limit is not None})
    return sum(amounts[able] for able in free) + sum(flow.pour(able, amounts[able]) for able in picky)


class _Flow:
    """What flows from each lot to each member; a later lot may push an earlier one elsewhere."""

    def __init__(self, room: dict[int, int]) -> None:
        self._room = room
        self._into: dict[int, dict[Members, int]] = {at: {} for at in room}

    def pour(self, lot: Members, amount: int) -> int:
        """Place as many of `amount` tasks of a lot as can be; how many that is."""
        left = amount - self._fill(lot, amount)
        while left and (way := self._way(lot)):
            bound = [self._into[giver][pushed] for giver, pushed in way[:-1]]
            end, _ = way[-1]
            poured = min(left, self._room[end], *bound)
            self._push(lot, way, poured)
            left -= poured
        return amount - left

    def _fill(self, lot: Members, amount: int) -> int:
        """Place of `amount` tasks of a lot what fits where there is room now; how many that is."""
        left = amount
        for at in lot:
            if poured := min(left, self._room.get(at, 0)):
                self._push(lot, [(at, lot)], poured)
                left -= poured
        return amount - left

    def _way(self, lot: Members) -> list[tuple[int, Members]]:
        """Members from the first to one with room, each with the lot that is pushed on; empty if none."""
        seen: dict[int, tuple[int, Members] | None] = {at: None for at in lot if at in self._room}
        queue, gone_into = deque(seen), {lot}
        while queue:
            at = queue.popleft()
            if self._room[at]:
                return _back(seen, at, lot)
            for pushed in [each for each in self._into[at] if each not in gone_into]:
                gone_into.add(pushed)
                for onward in pushed:
                    if onward in self._room and onward not in seen:
                        seen[onward] = (at, pushed)
                        queue.append(onward)
        return []

    def _push(self, lot: Members, way: list[tuple[int, Members]], amount: int) -> None:
        for at, pushed in way:
            self._into[at][lot] = self._into[at].get(lot, 0) + amount
            if at == way[-1][0]:
                self._room[at] -= amount
                return
            self._into[at][pushed] -= amount
            if not self._into[at][pushed]:
                del self._into[at][pushed]
            lot = pushed


def _back(
    seen: Mapping[int, tuple[int, Members] | None], end: int, lot: Members
) -> list[tuple[int, Members]]:
    way = [(end, lot)]
    while (step := seen[way[-1][0]]) is not None:
        way.append(step)
    return way[::-1]
