"""The alarms of one group: those that fire and those that did, which are stored, and what is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from manager.core.alarms.book import UNREAD, AlarmBook, for_workers
from manager.core.alarms.findings import Findings
from manager.core.alarms.life import FIRING, OK, Standing

if TYPE_CHECKING:
    from collections import deque

    from manager.core.alarms.findings import Batch
    from manager.core.alarms.seen import TaskSeen, WorkerSeen
    from manager.core.stored_rows import AlarmRow
    from protocol.messages.alarms import AlarmRule

PAST_KEPT: Final = 200
"""Alarms of a group that are over."""


class Key(NamedTuple):
    """An alarm: at most one of a rule and a subject fires."""

    rule: str
    subject: str


class Fitting(NamedTuple):
    """The rules that count for a task, and what they were found by: another definition, another book."""

    book: AlarmBook
    definition_version: int
    rules: tuple[AlarmRule, ...]


@dataclass(slots=True)
class Pass:
    """One look at all tasks and workers of a group, in slices; `place` is how many tasks were looked at.

    `rules` are those of `book` that are about anything in the group, `patterns` how many these have for a
    task, `compared` how many were compared with one in this slice. What is found is stored when all have been
    looked at: then `batches` are what is left to be stored.
    """

    book: AlarmBook
    rules: tuple[AlarmRule, ...]
    tasks: tuple[str, ...]
    worker_rules: tuple[AlarmRule, ...] = field(init=False)
    patterns: int = field(init=False)
    place: int = 0
    compared: int = 0
    looked_at: set[Key] = field(default_factory=set)
    findings: Findings = field(default_factory=Findings)
    batches: deque[Batch] | None = None

    def __post_init__(self) -> None:
        self.worker_rules = for_workers(self.rules)
        self.patterns = sum(1 + len(rule.labels) for rule in self.rules)


@dataclass(slots=True)
class GroupAlarms:
    """What fires is in `firing`, what did in `past`, the longest resolved first.

    `standings` are the alarms whose condition has begun or ceased to hold, `values` the last figure of those
    that fire; both are in memory only. `gone` are tasks that were deleted since they were looked at, of which
    there may be others of the same names by now. `loaded_at` is when the group was taken up, `looked_at` when
    it was looked at last, both by the monotonic clock in milliseconds; None if it is new, or was not.
    """

    book: AlarmBook = UNREAD
    firing: dict[Key, AlarmRow] = field(default_factory=dict)
    past: dict[tuple[object, ...], AlarmRow] = field(default_factory=dict)
    standings: dict[Key, Standing] = field(default_factory=dict)
    values: dict[Key, float] = field(default_factory=dict)
    tasks: dict[str, TaskSeen] = field(default_factory=dict)
    workers: dict[str, WorkerSeen] = field(default_factory=dict)
    fitting: dict[str, Fitting] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    under_way: Pass | None = None
    loaded_at: int | None = None
    looked_at: int | None = None
    _rules: tuple[AlarmBook, tuple[AlarmRule, ...]] = (UNREAD, ())

    def rules(self, group: str) -> tuple[AlarmRule, ...]:
        """Those that are about anything in this group, found out once for each book."""
        if self._rules[0] is not self.book:
            self._rules = (self.book, self.book.of_group(group))
        return self._rules[1]

    def wants_passes(self, group: str) -> bool:
        """Whether there is anything to look for, or to end."""
        return self.book.is_known and bool(self.firing or self.rules(group))

    def standing(self, key: Key) -> Standing:
        """How an alarm stands; one that was read from storage fires."""
        return self.standings.get(key) or (FIRING if key in self.firing else OK)

    def stand(self, key: Key, standing: Standing) -> None:
        """Keep how an alarm stands, as far as that does not follow from the rows."""
        if standing.pending_since is None and standing.clearing_since is None:
            self.standings.pop(key, None)
        else:
            self.standings[key] = standing

    def begin_anew(self, now: int) -> None:
        """Nobody has looked for a while, so nothing is known but what is stored, as after a takeover."""
        self.loaded_at = now
        self.standings.clear()
        self.values.clear()
        self.workers.clear()
        if self.under_way is not None and self.under_way.batches is None:
            self.under_way = None

    def keep(self, row: AlarmRow) -> None:
        """Take a row in, be it of an alarm that fires or of one that is over; they come in any order.

        Clocks are set back: one that fires may have begun before one that is over.
        """
        key = Key(row.rule, row.subject)
        if not row.resolved_at_ms:
            self.past.pop(row.key, None)
            self.firing[key] = row
            return
        fires = self.firing.get(key)
        if fires is not None and fires.fired_at_ms == row.fired_at_ms:
            del self.firing[key]
            self.values.pop(key, None)
        self.past[row.key] = row

    def drop(self, key: tuple[object, ...]) -> None:
        """A row is no longer stored."""
        if self.past.pop(key, None) is None:
            _, rule, subject, _ = key
            self.firing.pop(Key(str(rule), str(subject)), None)

    def forget_task(self, task: str) -> None:
        """There is no such task any more; what fires of it is resolved by the next pass."""
        self.tasks.pop(task, None)
        self.fitting.pop(task, None)
        if self.firing or self.standings:
            self.gone.add(task)

    def surplus(self) -> list[AlarmRow]:
        """Those that are over and in excess of what is kept, the oldest."""
        if len(self.past) <= PAST_KEPT:
            return []
        oldest_first = sorted(self.past.values(), key=lambda row: (row.resolved_at_ms, row.key))
        return oldest_first[: len(self.past) - PAST_KEPT]
