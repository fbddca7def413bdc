"""What a JVM keeps of its heap while it runs the same tasks. Rules without I/O.

What is in use goes up and down with every batch. What the last collection of the old generation has left is
the lower edge of that: as long as nobody keeps ever more, it stays where it is, however busy the JVM is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
WINDOWS_MS: Final = (3_600_000, 1_200_000)
"""How far back a rise is looked for: in good hours before it, it would be lost."""
LOWS_KEPT: Final = 600
"""Of one stretch; those are an hour and more, as a worker tells its figures each ten seconds."""


class Holder(NamedTuple):
    """A task as its definition had it: another version may keep something else."""

    task: str
    version: int


class Low(NamedTuple):
    """What a collection of the old generation has left, and what the state of each task took then."""

    at_ms: int
    bytes: int
    state: Mapping[str, int]


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
    """The time in which one worker's JVM has run the same tasks, from `began_ms` to `seen_ms`.

    Times are milliseconds of the monotonic clock. `stale` are the last figures of the stretch before, which
    are none of its own. `ceilings` are what was in use after collections of any kind, some of it garbage.
    `rise` is how what is kept grows lately. `after` is who ran there next, and the least that a collection
    has left then.
    """

    member_id: str
    holders: frozenset[Holder]
    heap_max: int
    began_ms: int
    stale: tuple[int | None, int | None] = (None, None)
    seen_ms: int = 0
    told: tuple[int | None, int | None] = (None, None)
    lows: deque[Low] = field(default_factory=lambda: deque(maxlen=LOWS_KEPT))
    ceilings: deque[int] = field(default_factory=lambda: deque(maxlen=CEILINGS_KEPT))
    rise: Rise | None = None
    after: tuple[frozenset[Holder], int] | None = None

    def look(self, at_ms: int, low: int | None, ceiling: int | None, state: Mapping[str, int]) -> bool:
        """Take in what is told now; returns whether the old generation has been collected again."""
        last_low, last_ceiling = self.stale if self.told == (None, None) else self.told
        self.seen_ms, self.told = at_ms, (low, ceiling)
        if ceiling is not None and ceiling != last_ceiling:
            self.ceilings.append(ceiling)
        if low is None or low == last_low:
            return False
        self.lows.append(Low(at_ms, low, state))
        self.rise = self._steady_rise()
        return True

    def shows_no(self, rise: Rise) -> bool:
        """Whether whoever ran here since `rise` began is not behind it: more would have had to be seen.

        A JVM that has enough of it leaves its old generation alone. Then what it has in use is what it keeps
        at most, and says the same once it is little enough.
        """
        thirds = thirds_of([each for each in self.lows if each.at_ms >= rise.since_ms])
        if thirds is not None:
            over_ms, grown = thirds[2].at_ms - thirds[0].at_ms, thirds[2].bytes - thirds[0].bytes
        elif len(self.ceilings) == CEILINGS_KEPT:
            over_ms, grown = self.seen_ms - max(self.began_ms, rise.since_ms), min(self.ceilings)
        else:
            return False
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

    def state_growth(self, task: str, rise: Rise) -> int:
        """How much the state of a task grew in the later two thirds of `rise`, in bytes.

        In the first one it may have been loaded.
        """
        begin = rise.since_ms + rise.over_ms // 3
        first = next((each for each in self.lows if each.at_ms >= begin), None)
        if first is None or task not in first.state:
            return 0
        return self.lows[-1].state.get(task, 0) - first.state[task]

    def _steady_rise(self) -> Rise | None:
        """One that is worth a word, neither a step nor one that levels off; of the last hour or less."""
        for window_ms in WINDOWS_MS:
            since = self.seen_ms - window_ms
            thirds = thirds_of([each for each in self.lows if each.at_ms >= since])
            if thirds is not None and (rise := self._worth_a_word(*thirds)) is not None:
                return rise
        return None

    def _worth_a_word(self, first: Low, middle: Low, last: Low) -> Rise | None:
        rise = Rise(first.at_ms, last.at_ms - first.at_ms, first.bytes, last.bytes)
        share = SHARE if rise.over_ms >= SLOW_MS else QUICK_SHARE
        if rise.over_ms < LEAST_MS or rise.bytes < self.heap_max * share:
            return None
        least = min(middle.bytes - first.bytes, last.bytes - middle.bytes)
        return rise if least >= rise.bytes / 4 else None


def thirds_of(lows: Sequence[Low]) -> tuple[Low, Low, Low] | None:
    """The lowest of each third of the time, as of its begin, middle and end; None for too few."""
    if len(lows) < LEAST_LOWS:
        return None
    begin, end = lows[0].at_ms, lows[-1].at_ms
    parts: tuple[list[Low], ...] = ([], [], [])
    for low in lows:
        parts[min(3 * (low.at_ms - begin) // max(end - begin, 1), 2)].append(low)
    if not all(parts):
        return None
    least = [min(part, key=lambda low: low.bytes) for part in parts]
    times = (begin, (begin + end) // 2, end)
    first, middle, last = (low._replace(at_ms=at) for low, at in zip(least, times, strict=True))
    return first, middle, last
