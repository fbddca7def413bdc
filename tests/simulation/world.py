"""Time, chance and the order of events: one seed, one history."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class World:
    """A queue of things to happen; `now` is in milliseconds and moves only from one to the next.

    With `tracing`, `trace` keeps what was noted, a line a thing.
    """

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.chance = random.Random(seed)
        self._draw = self.chance.random
        self.now = 0
        self.steps = 0
        self.tracing = tracing
        self.trace: list[str] = []
        self._order = count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have `action` happen then."""
        heappush(self._queue, (self.now + max(delay_ms, 0), next(self._order), action))

    def run(self, until: int) -> None:
        """Let everything happen that is due by then."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action = heappop(queue)
            self.steps += 1
            action()
        self.now = until

    def some(self, low: int, high: int) -> int:
        """A whole number between the two, both included."""
        return low + int(self._draw() * (high - low + 1))

    def happens(self, probability: float) -> bool:
        """Whether something of that probability happens now."""
        return self._draw() < probability

    def note(self, who: str, what: object) -> None:
        """Add a line to the trace."""
        if self.tracing:
            self.trace.append(f"{self.now:>6} {who}: {what}")
