"""What a JVM keeps of its heap while it runs the same tasks. Rules without I/O.

What is in use goes up and down with every batch. What the last collection of the old generation has left is
the lower edge of that: as long as nobody keeps ever more, it stays where it is, however busy the JVM is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from manager.core.heap.marks import Marks
from manager.core.heap.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manager.core.heap.marks import Doing, Done

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
LOWS_KEPT: Final = 96
"""Of one stretch."""
FULL: Final = 0.7
"""Of the largest heap: so much is in use after a collection where a JVM runs out of memory slowly."""
FILLED_MS: Final = 60_000
"""How long it has to have taken to fill at least: one huge batch is no rise."""


class Holder(NamedTuple):
    """A task as its definition had it: another version may keep something else."""

    task: str
    version: int


class Low(NamedTuple):
    """What a collection of the old generation has left."""

    at_ms: int
    bytes: int


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


class Flat(NamedTuple):
    """A while in which what a JVM keeps grew by `grown` bytes, and what its tasks did in that."""

    over_ms: int
    grown: int
    done: Done


class Stretch:
    """The time in which one worker's JVM has run the same tasks, from `began_ms` to `seen_ms`.

    Times are milliseconds of the monotonic clock. `rise` is how what is kept grows lately, and accuses
    somebody as long as `accuses`; with `is_last` its worker is no more. `told` are the last two figures.
    `after` is who ran there next, and the least that a collection has left then. `judged_ms` is when it was
    looked into last.
    """

    def __init__(
        self,
        member_id: str,
        holders: frozenset[Holder],
        heap_max: int,
        began_ms: int,
        stale: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """`stale` are the last figures of the stretch before, which are none of its own."""
        self.member_id = member_id
        self.holders = holders
        self.heap_max = heap_max
        self.began_ms = began_ms
        self.seen_ms = began_ms
        self.told = stale
        self.lows: Moments[Low] = Moments(LOWS_KEPT, WINDOWS_MS[0], _lower)
        self.marks = Marks((each.task for each in holders), WINDOWS_MS[0])
        self.rise: Rise | None = None
        self.accuses = True
        self.is_last = False
        self.judged_ms: int | None = None
        self.after: tuple[frozenset[Holder], int] | None = None
        self._ceilings: deque[int] = deque(maxlen=CEILINGS_KEPT)
        self._emptiest: Low | None = None

    def look(self, at_ms: int, low: int | None, ceiling: int | None, doing: Mapping[str, Doing]) -> bool:
        """Take in what is told now; returns whether the old generation has been collected again.

        Args:
            at_ms: the time.
            low: what its last collection has left.
            ceiling: what was in use after the last collection of any kind, some of it garbage.
            doing: what the tasks tell.
        """
        last_low, last_ceiling = self.told
        self.seen_ms, self.told = at_ms, (low, ceiling)
        self.marks.add(at_ms, doing)
        if ceiling is not None and ceiling != last_ceiling:
            self._note_ceiling(Low(at_ms, ceiling))
        if low is None or low == last_low:
            return False
        self.lows.add(Low(at_ms, low))
        self.rise = self._steady_rise()
        return True

    def _note_ceiling(self, ceiling: Low) -> None:
        self._ceilings.append(ceiling.bytes)
        if self._emptiest is None or ceiling.bytes < self._emptiest.bytes:
            self._emptiest = ceiling

    def out_of_memory(self) -> None:
        """Its JVM has ended for that: a rise, although too quick for what collections have left.

        Not all at once, and none where the old generation was collected and left little.
        """
        first, last = self._emptiest, self.told[1]
        if self.rise is not None or first is None or last is None or last < FULL * self.heap_max:
            return
        rise = Rise(first.at_ms, self.seen_ms - first.at_ms, first.bytes, last)
        if rise.over_ms >= FILLED_MS and rise.bytes >= QUICK_SHARE * self.heap_max and self._follow(rise):
            self.rise = rise

    def _follow(self, rise: Rise) -> bool:
        """Whether the last collection of the old generation, if there was one, has left half of the rise."""
        lows = self.lows.since(rise.since_ms)
        if not lows or lows[-1].at_ms == rise.since_ms:
            return True
        expected = rise.bytes * (lows[-1].at_ms - rise.since_ms) / rise.over_ms
        return lows[-1].bytes - rise.from_bytes >= expected / 2

    def flat_since(self, at_ms: int) -> Flat | None:
        """How what is kept went on from then on; None if too little is known of it.

        A JVM that has enough of it leaves its old generation alone. Then what it has in use is what it keeps
        at most, and says the same once it is little enough.
        """
        thirds = thirds_of(self.lows.since(at_ms))
        if thirds is not None:
            first, _, last = thirds
            return self._flat(first.at_ms, last.at_ms, last.bytes - first.bytes)
        if len(self._ceilings) == CEILINGS_KEPT:
            return self._flat(max(self.began_ms, at_ms), self.seen_ms, min(self._ceilings))
        return None

    def _flat(self, begin_ms: int, end_ms: int, grown: int) -> Flat:
        return Flat(end_ms - begin_ms, grown, self.marks.within(begin_ms, end_ms))

    def clears(self, holder: Holder, flat: Flat, rise: Rise, batches: int) -> bool:
        """Whether a task that ran here is not behind a rise elsewhere: more would have had to be seen.

        What fills a heap does so with its batches, so who has done few has had little chance to. Of a task
        that did none during the rise, only the time counts.

        Args:
            holder: the task.
            flat: what was seen here since the rise began.
            rise: that of the other stretch.
            batches: how many the task has finished during the rise.
        """
        share = flat.over_ms / rise.over_ms
        if batches:
            share = min(share, flat.done.batches(holder.task) / batches)
        expected = rise.bytes * share
        return expected >= SHARE * self.heap_max and flat.grown <= expected / 2

    def left_after(self, holder: Holder) -> int | None:
        """What a collection has left when that task ran there no more, in bytes; None if nobody knows."""
        if self.after is None or holder in self.after[0]:
            return None
        return self.after[1]

    def followed_by(self, holders: frozenset[Holder], low: int) -> None:
        """Others run there now, and a collection has left that much."""
        least = low if self.after is None or self.after[0] != holders else min(low, self.after[1])
        self.after = (holders, least)

    def done_in(self, rise: Rise) -> Done:
        """What the tasks have done during a rise of this stretch, if anything too much."""
        return self.marks.around(rise.since_ms, rise.since_ms + rise.over_ms)

    def state_growth(self, task: str, rise: Rise) -> int:
        """How much the state of a task grew in the later two thirds of `rise`, in bytes.

        In the first one it may have been loaded.
        """
        return self.marks.state_growth(task, rise.since_ms + rise.over_ms // 3)

    def _steady_rise(self) -> Rise | None:
        """One that is worth a word, neither a step nor one that levels off; of the last hour or less."""
        for window_ms in WINDOWS_MS:
            thirds = thirds_of(self.lows.since(self.seen_ms - window_ms))
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


def _lower(first: Low, second: Low) -> Low:
    return Low(first.at_ms, min(first.bytes, second.bytes))
