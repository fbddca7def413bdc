"""Alarms of the database while it is away: nothing can be stored then, nor read of the log of events.

Each manager looks at its own transactions all the time. What holds while the database is there is told by
the manager that watches the herd, durably; while it is away, each manager tells it by itself, from memory.
Once it is back, what was told is handed to storage (`take_told`), where the ordinary way finds its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.alarms.book import for_herd
from manager.core.alarms.findings import DATABASE, Batch, Finding, subject_of
from manager.core.alarms.herd_conditions import TransactionsSeen, read_database
from manager.core.alarms.herd_watch import NO_GROUP, errors_of
from manager.core.alarms.life import OK, Moment, Verdict, is_due_again, look
from manager.core.stored_rows import AlarmRow
from protocol.alarm_kinds import TRAITS, About

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from manager.core.alarms.book import AlarmBook
    from manager.core.alarms.facts import Reading
    from manager.core.alarms.herd_facts import ManagerFigures
    from manager.core.alarms.life import Standing
    from protocol.messages.alarm_notice import AlarmNotice
    from protocol.messages.alarms import AlarmRule

DELIVERED_AFTER_MS: Final = 10_000
"""What was stored so long before the database went away has reached its receivers from there."""


class DatabaseGuard:
    """What one manager sees of the database, and what it has told by itself.

    Args:
        name: of this manager, for the causes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._transactions = TransactionsSeen()
        self._standings: dict[str, Standing] = {}
        self._told: dict[str, AlarmRow] = {}
        self._delivered: frozenset[str] = frozenset()

    def well(self, book: AlarmBook, firing: Iterable[AlarmRow], figures: ManagerFigures, at: Moment) -> None:
        """The database is there, and `firing` is what fires by it."""
        stored = [row for row in firing if row.subject == DATABASE]
        self._delivered = frozenset(
            row.rule for row in stored if row.told_at_ms <= at.wall_ms - DELIVERED_AFTER_MS
        )
        known = self._told.keys() | {row.rule for row in stored}
        for name in [name for name, how in self._standings.items() if how.is_firing and name not in known]:
            del self._standings[name]
        for rule, reading in self._readings(book, figures, at):
            self._look(rule, reading, Moment(at.now, at.wall_ms, may_fire=False))

    def away(self, book: AlarmBook, figures: ManagerFigures, at: Moment) -> list[AlarmNotice]:
        """The database is away: returns what this manager has to tell."""
        found = (self._find(book, rule, reading, at) for rule, reading in self._readings(book, figures, at))
        return [notice for notice in (self._notice(each, figures) for each in found) if notice is not None]

    def take_told(self) -> tuple[AlarmRow, ...]:
        """What was told without the database, as it is to be stored; `stored` has to follow."""
        return tuple(self._told.values())

    def stored(self) -> None:
        """All of that is stored."""
        self._told.clear()

    def _readings(
        self, book: AlarmBook, figures: ManagerFigures, at: Moment
    ) -> Iterator[tuple[AlarmRule, Reading]]:
        rules = for_herd(book.rules) if book.is_known else ()
        for rule in rules:
            if TRAITS[rule.kind].about is About.DATABASE:
                gained = self._transactions.take(self._name, figures, rule.window_ms, at.now)
                yield rule, read_database(rule, gained)

    def _look(self, rule: AlarmRule, reading: Reading, at: Moment) -> Verdict:
        standing, verdict = look(rule, reading, self._standings.get(rule.name, OK), at)
        self._standings[rule.name] = standing
        return verdict

    def _find(
        self, book: AlarmBook, rule: AlarmRule, reading: Reading, at: Moment
    ) -> tuple[Finding, AlarmRow] | None:
        """What is silenced, or was told by way of the database, waits."""
        is_silenced = book.is_silenced(rule.name, NO_GROUP, None, at.wall_ms)
        waits = is_silenced or rule.name in self._delivered
        pending_since = self._standings.get(rule.name, OK).pending_since
        verdict = self._look(rule, reading, Moment(at.now, at.wall_ms, may_fire=not waits))
        if verdict is Verdict.FIRES:
            held_ms = 0 if pending_since is None else at.now - pending_since
            row = self._told[rule.name] = _row(rule, reading, at.wall_ms, held_ms)
            return Finding.FIRES, row
        told = self._told.get(rule.name)
        if told is None or is_silenced or not self._standings[rule.name].is_firing:
            return None
        if not is_due_again(rule, told.told_at_ms, at.wall_ms):
            return None
        row = self._told[rule.name] = msgspec.structs.replace(told, told_at_ms=at.wall_ms)
        return Finding.REPEATS, row

    def _notice(self, found: tuple[Finding, AlarmRow] | None, figures: ManagerFigures) -> AlarmNotice | None:
        if found is None:
            return None
        return notice_of(*found, (f"told by manager {self._name} itself", *errors_of(figures)))


def notice_of(finding: Finding, row: AlarmRow, causes: Sequence[str] = ()) -> AlarmNotice | None:
    """What receivers are told of one alarm."""
    return Batch(finding, row, [row], audible=1, subjects=[subject_of(row, tuple(causes))]).notice()


def _row(rule: AlarmRule, reading: Reading, wall_ms: int, held_ms: int) -> AlarmRow:
    return AlarmRow(
        group=NO_GROUP,
        rule=rule.name,
        subject=DATABASE,
        fired_at_ms=wall_ms,
        kind=rule.kind.value,
        severity=rule.severity.value,
        since_ms=wall_ms - held_ms,
        told_at_ms=wall_ms,
        value=reading.value,
        threshold=rule.threshold,
        receivers=rule.receivers,
    )
