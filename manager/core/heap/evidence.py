"""What was seen of the JVMs of a group: the stretches that go on, and the latest of those that are over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from manager.core.heap.stretches import Stretch

KEPT_MS: Final = 86_400_000
"""How long what was seen is believed."""
LEAST_MS: Final = 30_000
"""A stretch that was shorter says nothing."""
PAST_OF_EACH: Final = 2
"""How many stretches that are over are kept for each worker that there is."""
PAST_AT_LEAST: Final = 64
LOOKED_AT: Final = 32
"""So many of the oldest are looked at for one in which nothing rose, once there are too many."""


@dataclass(slots=True)
class Evidence:
    """`open` and `before` are the present stretch of each member, and the one that came before it."""

    open: dict[str, Stretch] = field(default_factory=dict)
    before: dict[str, Stretch] = field(default_factory=dict)
    _past: deque[Stretch] = field(default_factory=deque)
    _with: dict[str, dict[Stretch, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many stretches are kept."""
        return len(self.open) + len(self._past)

    def begin(self, stretch: Stretch) -> None:
        """A member runs other tasks from now on."""
        self.end(stretch.member_id)
        self.open[stretch.member_id] = stretch
        for holder in stretch.holders:
            self._with.setdefault(holder.task, {})[stretch] = None

    def end(self, member_id: str) -> Stretch | None:
        """What a member ran is over; returns what is kept of it."""
        stretch = self.open.pop(member_id, None)
        if stretch is None:
            return None
        if stretch.seen_ms - stretch.began_ms < LEAST_MS:
            self._unlist(stretch)
            return None
        self._past.append(stretch)
        self.before[member_id] = stretch
        return stretch

    def gone(self, member_id: str) -> Stretch | None:
        """A member is no more; returns what is kept of its last stretch.

        What it ran before may say more: of a JVM that fills up, one task may fail before all do.
        """
        ended = self.end(member_id)
        self.before.pop(member_id, None)
        for stretch in self._past:
            stretch.is_last |= stretch.member_id == member_id
        return ended

    def related(self, stretch: Stretch) -> Iterator[Stretch]:
        """Others in which one of the same tasks ran, whatever its definition was."""
        found: dict[Stretch, None] = {}
        for holder in stretch.holders:
            found |= self._with.get(holder.task, {})
        found.pop(stretch, None)
        return iter(found)

    def of_task(self, task: str) -> list[Stretch]:
        """All in which it ran, whatever its definition was."""
        return [*self._with.get(task, ())]

    def is_over(self, stretch: Stretch) -> bool:
        """Whether its worker runs other tasks now, or is no more."""
        return self.open.get(stretch.member_id) is not stretch

    def trim(self, now_ms: int, let_go: Callable[[Stretch], None]) -> None:
        """Keep no more than a few of each member, and none that is too old; a rise is kept the longest."""
        most = max(PAST_AT_LEAST, PAST_OF_EACH * len(self.open))
        while self._past and (len(self._past) > most or now_ms - self._past[0].seen_ms > KEPT_MS):
            stretch = self._past[0]
            if now_ms - stretch.seen_ms <= KEPT_MS:
                oldest = (self._past[at] for at in range(min(LOOKED_AT, len(self._past))))
                stretch = next((each for each in oldest if each.rise is None), stretch)
            self._past.remove(stretch)
            self._unlist(stretch)
            let_go(stretch)

    def _unlist(self, stretch: Stretch) -> None:
        for holder in stretch.holders:
            listed = self._with[holder.task]
            del listed[stretch]
            if not listed:
                del self._with[holder.task]
