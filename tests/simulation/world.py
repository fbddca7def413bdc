"""Time, chance and the order of events: one seed, one history."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class World:
    """A queue of things to happen; `now` is in milliseconds and moves only from one to the next."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0
        self.steps = 0
        self._order = count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have `action` happen then."""
        heappush(self._queue, (self.now + max(delay_ms, 0), next(self._order), action))

    def run(self, until: int) -> None:
        """Let everything happen that is due by then."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heappop(self._queue)
            self.steps += 1
            action()
        self.now = until

    def some(self, low: int, high: int) -> int:
        """A whole number between the two, both included."""
        return self.chance.randint(low, high)

    def happens(self, probability: float) -> bool:
        """Whether something of that probability happens now."""
        return self.chance.random() < probability
