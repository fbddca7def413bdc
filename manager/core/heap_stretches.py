"""What a JVM keeps of its heap while it runs the same tasks. Rules without I/O.

What is in use goes up and down with every batch. What the last collection of the old generation has left is
the lower edge of that: as long as nobody keeps ever more, it stays where it is, however busy the JVM is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE: Final = 0.05
"""Of the largest heap: a rise that is worth a word."""
QUICK_SHARE: Final = 0.15
"""The same of one that has not gone on for `SLOW_MS` yet: who has just begun fills caches and histories."""
SLOW_MS: Final = 600_000
LEAST_MS: Final = 120_000
"""How long a rise has to go on at least."""
LEAST_LOWS: Final = 4
"""One for each third at least, and one more."""
CEILINGS_KEPT: Final = 6
"""The latest ones: the least of them is how much the JVM keeps at most."""
LOWS_KEPT: Final = 300
"""Of one stretch; beyond them every second one is forgotten."""


class Holder(NamedTuple):
    """A task as its definition had it: another version may keep something else."""

    task: str
    version: int


class Rise(NamedTuple):
    """What a JVM keeps grew `from_bytes` to `to_bytes`, in the `over_ms` since `since_ms`."""

    since_ms: int
    over_ms: int
    from_bytes: int
    to_bytes: int

    @property
    def bytes(self) -> int:
        """How much it is, below 0 for a fall."""
        return self.to_bytes - self.from_bytes


@dataclass(slots=True, eq=False)
class Stretch:
    """The time in which one worker's JVM has run the same tasks.

    Times are milliseconds of the monotonic clock. `lows` is what each collection of the old generation has
    left, in bytes, and when that was told; the last one of the stretch before, `stale`, is none of its own.
    `ceilings` are what was in use after collections of any kind, some of it garbage. `state` is what each
    task's state took when it was told first, and last. `after` is who ran there next, and the least that a
    collection has left then.
    """

    member_id: str
    holders: frozenset[Holder]
    heap_max: int
    began_ms: int
    stale: int | None = None
    lows: list[tuple[int, int]] = field(default_factory=list)
    state: dict[str, tuple[int, int]] = field(default_factory=dict)
    ceilings: deque[int] = field(default_factory=lambda: deque(maxlen=CEILINGS_KEPT))
    seen_ms: int = 0
    after: tuple[frozenset[Holder], int] | None = None

    def look(self, at_ms: int, low: int | None, ceiling: int | None, state: Mapping[str, int]) -> bool:
        """Take in what is told now; returns whether the old generation has been collected again."""
        self.seen_ms = at_ms
        if ceiling is not None:
            self.ceilings.append(ceiling)
        for task, size in state.items():
            self.state[task] = (self.state.get(task, (size, size))[0], size)
        if low is None or low == (self.lows[-1][1] if self.lows else self.stale):
            return False
        self.lows.append((at_ms, low))
        if len(self.lows) > LOWS_KEPT:
            self.lows = self.lows[::2]
        return True

    def change(self) -> Rise | None:
        """From the lowest of the first third to that of the last one; None for so few lows."""
        thirds = self._thirds()
        if thirds is None:
            return None
        (begin, first), _, (end, last) = thirds
        return Rise(begin, end - begin, first, last)

    def steady_rise(self) -> Rise | None:
        """A rise that is worth a word, neither a step nor one that levels off; None if there is none."""
        thirds, change = self._thirds(), self.change()
        if thirds is None or change is None or change.over_ms < LEAST_MS:
            return None
        if change.bytes < self.heap_max * (SHARE if change.over_ms >= SLOW_MS else QUICK_SHARE):
            return None
        earlier, later = thirds[1][1] - thirds[0][1], thirds[2][1] - thirds[1][1]
        return change if min(earlier, later) >= change.bytes / 4 else None

    def shows_no(self, rise: Rise) -> bool:
        """Whether whoever ran here is not behind `rise`: by its rate, more would have had to be seen.

        A JVM that has enough of it leaves its old generation alone. Then what it has in use is what it keeps
        at most, and says the same once it is little enough.
        """
        change = self.change()
        if change is None and len(self.ceilings) < CEILINGS_KEPT:
            return False
        over_ms = self.seen_ms - self.began_ms if change is None else change.over_ms
        grown = min(self.ceilings) if change is None else change.bytes
        expected = rise.bytes * over_ms / rise.over_ms
        return expected >= SHARE * self.heap_max and grown <= expected / 2

    def left_after(self, holder: Holder) -> int | None:
        """What a collection has left when that task ran there no more, in bytes; None if nobody knows."""
        if self.after is None or holder in self.after[0]:
            return None
        return self.after[1]

    def followed_by(self, holders: frozenset[Holder], low: int) -> None:
        """Others run there now, and a collection has left that much."""
        least = low if self.after is None or self.after[0] != holders else min(low, self.after[1])
        self.after = (holders, least)

    def state_growth(self, task: str) -> int:
        """How much more the state of a task takes than when it was told first, in bytes."""
        first, last = self.state.get(task, (0, 0))
        return last - first

    def _thirds(self) -> tuple[tuple[int, int], ...] | None:
        """The lowest of each third of the time, by its end but for the first, which is told by its begin."""
        if len(self.lows) < LEAST_LOWS:
            return None
        begin, end = self.lows[0][0], self.lows[-1][0]
        parts: tuple[list[int], ...] = ([], [], [])
        for at, low in self.lows:
            parts[min(3 * (at - begin) // max(end - begin, 1), 2)].append(low)
        if not all(parts):
            return None
        at_ms = (begin, (begin + end) // 2, end)
        return tuple(zip(at_ms, map(min, parts), strict=True))
