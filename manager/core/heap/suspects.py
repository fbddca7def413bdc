"""Which task may be why a heap grows, by who ran where when it did and when it did not. Rules without I/O.

Nothing says how much of a JVM's heap is whose. But tasks move: what grew while a task ran, and did not where
each of the others ran, is likely to be that task's. It is a suspicion, and told as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from manager.core.heap.evidence import Evidence
from manager.core.heap.stretches import FILLED_MS, Holder, Rise, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from manager.core.heap.marks import Doing

Ground: TypeAlias = Literal["alone", "state", "others_cleared"]

EVERY_MS: Final = 30_000
"""The shortest time between two judgements of the same stretch."""
JUDGED_AT_ONCE: Final = 2
"""Stretches that are over, with what one worker tells: there may be many, and the manager has other work."""
FIRM_MS: Final = 600_000
"""For so long at most a suspicion has to stand before it is acted upon, where others were cleared."""
UNDECIDED_MS: Final = 3_600_000
"""For so long the tasks of a worker that is gone are told apart, if one of them may have filled its heap."""
TOLD_AGAIN_MS: Final = 3_600_000
"""A suspicion that was gone for so long is news when it comes back."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The heap of `stretch` rose, which is laid to `holder` for `ground`."""

    holder: Holder
    ground: Ground
    rise: Rise
    stretch: Stretch


@dataclass(frozen=True, slots=True)
class Undecided:
    """The heap of a stretch rose, and it may be why of each of `tasks`."""

    rise: Rise
    tasks: tuple[str, ...]


class Judgement(NamedTuple):
    """`news` was not suspected before; `standing` is what the stretches that were looked into come to.

    Each is of another task.
    """

    news: list[Suspicion]
    standing: list[Suspicion]


@dataclass(slots=True)
class HeapSuspects:
    """Of one group. `suspicions` are by task.

    `apart` is the task that is offered as one that wants a worker of its own, for it to be seen alone;
    `had_no_room` are the members of the group when there was none for such a task. `asked_ms` is when it was
    looked for such a task last.
    """

    suspicions: dict[str, Suspicion] = field(default_factory=dict)
    apart: str | None = None
    had_no_room: frozenset[str] = frozenset()
    asked_ms: int | None = None
    evidence: Evidence = field(default_factory=Evidence)
    _verdicts: dict[Stretch, Suspicion | Undecided] = field(default_factory=dict)
    _suspected_since: dict[str, int] = field(default_factory=dict)
    _last_suspected: dict[str, int] = field(default_factory=dict)

    def unresolved_of(self, member_id: str) -> Undecided | None:
        """Who may be why the heap of a member rises; None if it does not, or one task is why."""
        stretch = self.evidence.open.get(member_id)
        verdict = self._verdicts.get(stretch) if stretch is not None else None
        return verdict if isinstance(verdict, Undecided) else None

    def left_undecided(self, now: int) -> set[str]:
        """Tasks of which each may be why the heap of a worker rose that died lately, or left.

        Once one is left of them, it is that one: alone, it shows whether it is.
        """
        found = [
            each
            for stretch, each in self._verdicts.items()
            if stretch.is_last and now - stretch.seen_ms <= UNDECIDED_MS
        ]
        suspects = {
            each.holder.task
            for each in found
            if isinstance(each, Suspicion) and each.ground == "others_cleared"
        }
        return suspects or {task for each in found if isinstance(each, Undecided) for task in each.tasks}

    def look(
        self,
        member_id: str,
        holders: frozenset[Holder],
        *,
        low: int | None,
        ceiling: int | None,
        heap_max: int,
        doing: Mapping[str, Doing],
        at_ms: int,
    ) -> Judgement | None:
        """Take in what a worker tells of its one JVM.

        Args:
            member_id: the worker.
            holders: what it runs now.
            low: what the last collection of the old generation has left, in bytes; None before the first.
            ceiling: what was in use after the last collection of any kind, in bytes; None before the first.
            heap_max: how large its heap may become, in bytes.
            doing: what each task tells, where that is known.
            at_ms: the time, in milliseconds of the monotonic clock.

        Returns:
            What follows; None if it is too early to judge again.
        """
        stretch = self.evidence.open.get(member_id)
        if stretch is None or stretch.holders != holders:
            stretch = self._begin(member_id, holders, heap_max, at_ms)
        is_new = stretch.look(at_ms, low, ceiling, doing)
        if is_new and low is not None and (before := self.evidence.before.get(member_id)) is not None:
            before.followed_by(holders, low)
        if stretch.judged_ms is not None and at_ms - stretch.judged_ms < EVERY_MS:
            return None
        return self._judge(stretch, at_ms)

    def out_of_memory(self, member_id: str) -> None:
        """The JVM of the worker has ended for that; before the worker is `gone`.

        One of its tasks may have failed of the same just before, so what it ran until then counts as well.
        """
        last, before = self.evidence.open.get(member_id), self.evidence.before.get(member_id)
        is_short = last is None or last.seen_ms - last.began_ms < FILLED_MS
        for stretch in (last, before if is_short else None):
            if stretch is not None:
                stretch.out_of_memory()
                self._find(stretch)
        self._list()

    def gone(self, member_id: str) -> None:
        """The worker has left, or is lost: what was seen of it stays."""
        stretch = self.evidence.open.get(member_id)
        kept = self.evidence.gone(member_id)
        if kept is None and stretch is not None:
            self._acquit(stretch)

    def forget(self, task: str) -> None:
        """Somebody takes the task's side, or it is no more: nothing that was seen with it accuses anybody.

        What was seen to stay flat clears whom it clears.
        """
        for stretch in self.evidence.of_task(task):
            stretch.accuses = False
            if not self.evidence.is_over(stretch):
                self.evidence.end(stretch.member_id)
            self._acquit(stretch)
        self._last_suspected.pop(task, None)
        self._suspected_since.pop(task, None)
        self._list()

    def _begin(self, member_id: str, holders: frozenset[Holder], heap_max: int, at_ms: int) -> Stretch:
        before = self.evidence.open.get(member_id) or self.evidence.before.get(member_id)
        stale = before.told if before is not None else (None, None)
        stretch = Stretch(member_id, holders, heap_max, at_ms, stale)
        self.evidence.begin(stretch)
        return stretch

    def _judge(self, stretch: Stretch, now: int) -> Judgement:
        """Its own rise, and those that what is seen here may throw light on."""
        stretch.judged_ms = now
        self.evidence.trim(now, self._acquit)
        judged = [*islice(self._due(stretch, now), JUDGED_AT_ONCE), stretch]
        for each in judged:
            each.judged_ms = now
            self._find(each)
        self._list()
        found = (self._verdicts.get(each) for each in judged)
        standing = {each.holder.task: each for each in found if isinstance(each, Suspicion)}
        return Judgement(self._news(now), [*standing.values()])

    def _find(self, stretch: Stretch) -> None:
        self._verdicts.pop(stretch, None)
        if stretch.rise is not None and stretch.accuses and stretch.holders:
            self._verdicts[stretch] = self._verdict(stretch, stretch.rise)

    def _due(self, stretch: Stretch, now: int) -> Iterator[Stretch]:
        """Those that are over and rose, of which this one has some of the tasks."""
        for each in self.evidence.related(stretch):
            is_due = each.judged_ms is None or now - each.judged_ms >= EVERY_MS
            if is_due and each.rise is not None and each.accuses and self.evidence.is_over(each):
                yield each

    def _acquit(self, stretch: Stretch) -> None:
        self._verdicts.pop(stretch, None)

    def _list(self) -> None:
        """By task; of several verdicts the latest counts."""
        found = (each for each in self._verdicts.values() if isinstance(each, Suspicion))
        self.suspicions = {each.holder.task: each for each in found}
        for task in self._suspected_since.keys() - self.suspicions.keys():
            del self._suspected_since[task]

    def _news(self, now: int) -> list[Suspicion]:
        last = self._last_suspected
        new = [
            each
            for task, each in self.suspicions.items()
            if task not in last or now - last[task] > TOLD_AGAIN_MS
        ]
        last |= dict.fromkeys(self.suspicions, now)
        self._suspected_since = dict.fromkeys(self.suspicions, now) | self._suspected_since
        return new

    def is_firm(self, suspicion: Suspicion, now: int) -> bool:
        """Whether it is enough to act upon.

        Where others were cleared, the accused may be cleared a moment later, by what is seen of it then: it
        has as long for that as the heap rose, `FIRM_MS` at most.
        """
        if suspicion.ground != "others_cleared":
            return True
        since = self._suspected_since.get(suspicion.holder.task, now)
        return now - since >= min(suspicion.rise.over_ms, FIRM_MS)

    def _verdict(self, stretch: Stretch, rise: Rise) -> Suspicion | Undecided:
        """The one whose rise it is, or all whose it may be."""
        left = set(stretch.holders)
        done = stretch.done_in(rise)
        batches = {each: done.batches_of_all(each.task) for each in left}
        for other in self.evidence.related(stretch):
            here = left & other.holders if other.seen_ms > rise.since_ms else None
            if here and (flat := other.flat_since(rise.since_ms)) is not None:
                left -= {each for each in here if other.clears(each, flat, rise, batches[each])}
        by_state = [each for each in left if stretch.state_growth(each.task, rise) >= rise.bytes / 3]
        if len(by_state) == 1:
            return self._suspect(stretch, rise, by_state, "state")
        if len(left) == 1:
            ground: Ground = "alone" if len(stretch.holders) == 1 else "others_cleared"
            return self._suspect(stretch, rise, left, ground)
        return Undecided(rise, tuple(sorted(each.task for each in left or stretch.holders)))

    def _suspect(self, stretch: Stretch, rise: Rise, left: Iterable[Holder], ground: Ground) -> Suspicion:
        (holder,) = left
        return Suspicion(holder, ground, rise, stretch)
