"""Which task may be why a heap grows, by who ran where when it did and when it did not. Rules without I/O.

Nothing says how much of a JVM's heap is whose. But tasks move: what grew while a task ran, and did not where
each of the others ran, is likely to be that task's. It is a suspicion, and told as one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from manager.core.heap_stretches import Holder, Rise, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Ground: TypeAlias = Literal["alone", "state", "others_cleared"]

STRETCHES_KEPT: Final = 64
"""Of those that are over."""
KEPT_MS: Final = 86_400_000
"""How long one is believed."""
EVERY_MS: Final = 30_000
"""The shortest time between two judgements: they compare everybody with everybody."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The heap of `stretch` rose, which is laid to `holder` for `ground`."""

    holder: Holder
    ground: Ground
    rise: Rise
    stretch: Stretch


@dataclass(slots=True)
class HeapSuspects:
    """Of one group. `suspicions` are by task, `unresolved` by member whose heap rises: who may be why.

    `acted_upon` are the suspects that something was done about, because their definition says so.
    """

    suspicions: dict[str, Suspicion] = field(default_factory=dict)
    unresolved: dict[str, tuple[Rise, tuple[str, ...]]] = field(default_factory=dict)
    acted_upon: set[str] = field(default_factory=set)
    _open: dict[str, Stretch] = field(default_factory=dict)
    _before: dict[str, Stretch] = field(default_factory=dict)
    _past: deque[Stretch] = field(default_factory=lambda: deque(maxlen=STRETCHES_KEPT))
    _judged_at: int | None = None

    def look(
        self,
        member_id: str,
        holders: frozenset[Holder],
        *,
        low: int | None,
        ceiling: int | None,
        heap_max: int,
        state: Mapping[str, int],
        at_ms: int,
    ) -> list[Suspicion]:
        """Take in what a worker tells of its one JVM.

        Args:
            member_id: the worker.
            holders: what it runs now.
            low: what the last collection of the old generation has left, in bytes; None before the first.
            ceiling: what was in use after the last collection of any kind, in bytes; None before the first.
            heap_max: how large its heap may become, in bytes.
            state: what the state of each task takes, in bytes, where that is known.
            at_ms: the time, in milliseconds of the monotonic clock.

        Returns:
            What was not suspected before.
        """
        stretch = self._open.get(member_id)
        if stretch is None or stretch.holders != holders:
            stretch = self._begin(member_id, holders, heap_max, at_ms)
        is_new = stretch.look(at_ms, low, ceiling, state)
        if is_new and low is not None and (before := self._before.get(member_id)) is not None:
            before.followed_by(holders, low)
        if self._judged_at is not None and at_ms - self._judged_at < EVERY_MS:
            return []
        self._judged_at = at_ms
        return self._judge(at_ms)

    def gone(self, member_id: str) -> None:
        """The worker has left, or is lost: what was seen of it stays."""
        stretch = self._open.pop(member_id, None)
        self._before.pop(member_id, None)
        self.unresolved.pop(member_id, None)
        if stretch is not None:
            self._keep(stretch)

    def forget(self, task: str) -> None:
        """Somebody takes the task's side, or it is no more: what was seen with it counts no more."""
        self.suspicions.pop(task, None)
        self.acted_upon.discard(task)
        for member_id, stretch in tuple(self._open.items()):
            if task in _names(stretch.holders):
                self.gone(member_id)
        without = (each for each in self._past if task not in _names(each.holders))
        self._past = deque(without, maxlen=STRETCHES_KEPT)

    def _begin(self, member_id: str, holders: frozenset[Holder], heap_max: int, at_ms: int) -> Stretch:
        stale: tuple[int | None, int | None] = (None, None)
        if (before := self._open.get(member_id)) is not None:
            self._keep(before)
            self._before[member_id] = before
            stale = before.told
        self._open[member_id] = stretch = Stretch(member_id, holders, heap_max, at_ms, stale)
        return stretch

    def _keep(self, stretch: Stretch) -> None:
        """One that is too short to say anything is let go."""
        if stretch.seen_ms - stretch.began_ms >= EVERY_MS:
            self._past.append(stretch)

    def _judge(self, now: int) -> list[Suspicion]:
        while self._past and now - self._past[0].seen_ms > KEPT_MS:
            self._past.popleft()
        found: dict[str, Suspicion] = {}
        self.unresolved = {}
        for stretch, rise in self._rising():
            accused = self._accused(stretch, rise)
            if isinstance(accused, Suspicion):
                found.setdefault(accused.holder.task, accused)
            elif self._open.get(stretch.member_id) is stretch:
                self.unresolved[stretch.member_id] = (rise, accused)
        new = [each for task, each in found.items() if task not in self.suspicions]
        self.suspicions = found
        return new

    def _rising(self) -> Iterator[tuple[Stretch, Rise]]:
        """Those that still go on first, then the latest."""
        for stretch in self._all():
            if stretch.rise is not None and stretch.holders:
                yield stretch, stretch.rise

    def _all(self) -> Iterable[Stretch]:
        return [*self._open.values(), *reversed(self._past)]

    def _accused(self, stretch: Stretch, rise: Rise) -> Suspicion | tuple[str, ...]:
        """The one whose rise it is, or all whose it may be."""
        left = set(stretch.holders)
        for other in self._all():
            if other is not stretch and not left.isdisjoint(other.holders) and other.shows_no(rise):
                left -= other.holders
        by_state = [each for each in left if stretch.state_growth(each.task, rise) >= rise.bytes / 3]
        if len(by_state) == 1:
            return self._suspect(stretch, rise, by_state, "state")
        if len(left) == 1:
            ground: Ground = "alone" if len(stretch.holders) == 1 else "others_cleared"
            return self._suspect(stretch, rise, left, ground)
        return tuple(sorted(each.task for each in left or stretch.holders))

    def _suspect(self, stretch: Stretch, rise: Rise, left: Iterable[Holder], ground: Ground) -> Suspicion:
        (holder,) = left
        return Suspicion(holder, ground, rise, stretch)


def _names(holders: Iterable[Holder]) -> set[str]:
    return {each.task for each in holders}
