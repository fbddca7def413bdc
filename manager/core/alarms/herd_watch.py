"""Looks at the managers and the database, as one manager of the herd does at a time: docs/alarms.md.

What fires is stored; what is pending, and the windows, are in this manager's memory, and begin anew with the
next one that looks. `look` changes nothing of that before its outcome is stored and `accept`ed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from manager.core.alarms.alarms import GroupAlarms, Key, Pass
from manager.core.alarms.book import for_herd
from manager.core.alarms.facts import UNKNOWN
from manager.core.alarms.findings import DATABASE, MANAGER
from manager.core.alarms.herd_conditions import TransactionsSeen, read_database, read_manager
from manager.core.alarms.looking import Look
from protocol.alarm_kinds import TRAITS, About

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.alarms.book import AlarmBook
    from manager.core.alarms.facts import Reading
    from manager.core.alarms.findings import Batch
    from manager.core.alarms.herd_facts import HerdFacts, ManagerFacts, ManagerFigures
    from manager.core.alarms.life import Moment, Standing
    from manager.core.stored_rows import AlarmRow
    from protocol.messages.alarms import AlarmRule

NO_GROUP = ""


class Looked(NamedTuple):
    """What a look has come to: what is to be stored and told, and how alarms stand after it."""

    batches: Sequence[Batch]
    standings: dict[Key, Standing]


class HerdWatch:
    """What one manager remembers from one look to the next."""

    def __init__(self) -> None:
        self._standings: dict[Key, Standing] = {}
        self._transactions = TransactionsSeen()

    def forget(self) -> None:
        """Another manager looks from now on."""
        self._standings = {}
        self._transactions = TransactionsSeen()

    def look(self, book: AlarmBook, firing: Sequence[AlarmRow], facts: HerdFacts, at: Moment) -> Looked:
        """What becomes of all alarms.

        Args:
            book: rules and silences; while they are not known nothing begins or ends.
            firing: the rows of what fires, as they are stored.
            facts: how the managers are.
            at: the moment.
        """
        if not book.is_known:
            return Looked((), self._standings)
        alarms = self._alarms_of(book, firing)
        under_way = Pass(book, (), ())
        look = Look(NO_GROUP, alarms, under_way, at)
        for rule in for_herd(book.rules):
            if TRAITS[rule.kind].about is About.DATABASE:
                self._look_at_database(rule, facts, look, at)
            else:
                _look_at_managers(rule, facts, look, at)
        _end_others(alarms, look, under_way)
        self._transactions.keep(manager.incarnation for manager in facts.managers)
        return Looked(under_way.findings.take(), alarms.standings)

    def accept(self, looked: Looked) -> None:
        """It is stored."""
        self._standings = looked.standings

    def _alarms_of(self, book: AlarmBook, firing: Sequence[AlarmRow]) -> GroupAlarms:
        """What is stored counts: another manager may have told of the same, or ended it, since."""
        rows = {Key(row.rule, row.subject): row for row in firing}
        standings = {key: how for key, how in self._standings.items() if how.is_firing == (key in rows)}
        return GroupAlarms(book=book, firing=rows, standings=standings)

    def _look_at_database(self, rule: AlarmRule, facts: HerdFacts, look: Look, at: Moment) -> None:
        """As the manager sees it that it is worst for."""
        worst, seen_by = UNKNOWN, None
        for manager in facts.managers:
            gained = self._transactions.take(manager.incarnation, manager.figures, rule.window_ms, at.now)
            reading = UNKNOWN if manager.is_silent else read_database(rule, gained)
            if reading.value is not None and (worst.value is None or reading.value > worst.value):
                worst, seen_by = reading, manager
        look.take(rule, DATABASE, worst, None, lambda: () if seen_by is None else causes_of(seen_by))


def causes_of(manager: ManagerFacts) -> tuple[str, ...]:
    """Who sees the database like this, and what that manager last heard of it."""
    return (f"seen by manager {manager.id}", *errors_of(manager.figures))


def errors_of(figures: ManagerFigures) -> tuple[str, ...]:
    """What the database last said, if anything."""
    return () if figures.last_error is None else (figures.last_error,)


def _where(manager: ManagerFacts) -> tuple[str, ...]:
    return (f"at {manager.url}",)


def _look_at_managers(rule: AlarmRule, facts: HerdFacts, look: Look, at: Moment) -> None:
    for manager in facts.managers:
        reading: Reading = read_manager(rule, facts, manager, at.wall_ms)
        look.take(rule, MANAGER + manager.id, reading, None, partial(_where, manager))


def _end_others(alarms: GroupAlarms, look: Look, under_way: Pass) -> None:
    """What no rule is about any more: its manager has ended in order, or its rule is gone.

    A rule that cannot be read is about something that nobody here knows.
    """
    for key, row in alarms.firing.items():
        if key not in under_way.looked_at and key.rule not in under_way.book.unread:
            look.resolve(row)
    for key in alarms.standings.keys() - under_way.looked_at:
        del alarms.standings[key]
