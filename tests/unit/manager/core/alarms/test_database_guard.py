"""What a manager tells of the database by itself, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core.alarms.book import UNREAD, AlarmBook
from manager.core.alarms.database_guard import DatabaseGuard
from manager.core.alarms.herd_facts import ManagerFigures
from manager.core.alarms.life import Moment
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarms import Silence
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, rule

if TYPE_CHECKING:
    from manager.core.stored_rows import AlarmRow
    from protocol.messages.alarm_notice import AlarmNotice

RULE = rule(
    AlarmKind.DATABASE_FAILING,
    name="failing",
    threshold=20,
    window_ms=MINUTE,
    for_ms=MINUTE,
    receivers=("ops",),
)
STEP_S = 5


class Guarded:
    """A manager with a transaction every five seconds."""

    def __init__(self, **fields: Any) -> None:
        self.book = AlarmBook((msgspec.structs.replace(RULE, **fields),))
        self.guard = DatabaseGuard("a")
        self.now = 0
        self.set_back_ms = 0
        self.figures = ManagerFigures(last_error="connection refused")
        self.firing: list[AlarmRow] = []
        self.well(60)

    @property
    def at(self) -> Moment:
        return Moment(self.now, WALL + self.now - self.set_back_ms)

    def _transact(self, failed: int) -> None:
        self.now += STEP_S * 1000
        before = self.figures
        self.figures = msgspec.structs.replace(
            before, transactions=before.transactions + 1, failed=before.failed + failed
        )

    def well(self, seconds: int, failed: int = 0) -> None:
        """The database is there for so long, and takes what this manager tells of itself."""
        for _ in range(seconds // STEP_S):
            self._transact(failed)
            self.guard.well(self.book, self.firing, self.figures, self.at)

    def away(self, seconds: int) -> list[AlarmNotice]:
        """It is away for so long; returns what is told meanwhile."""
        told = []
        for _ in range(seconds // STEP_S):
            self._transact(1)
            told += self.guard.away(self.book, self.figures, self.at)
        return told


def test_an_outage_is_told_when_its_patience_is_over_and_once() -> None:
    """Above a fifth after fifteen seconds, and a minute later told; with who says so, and why."""
    guarded = Guarded()
    assert guarded.away(70) == []
    (notice,) = guarded.away(600)
    assert (notice.rule, notice.receivers, notice.count, notice.is_repeat) == ("failing", ("ops",), 1, False)
    (subject,) = notice.subjects
    assert (subject.task, subject.member, subject.manager, subject.threshold) == (None, None, None, 20)
    assert subject.causes == ("told by manager a itself", "connection refused")
    assert subject.since_ms == WALL + guarded.now - 600_000 + 5000 - MINUTE


def test_a_short_outage_is_not_told() -> None:
    """Nor is the one after it, for which patience begins anew."""
    guarded = Guarded()
    assert guarded.away(60) == []
    guarded.well(120)
    assert guarded.away(60) == []


def test_a_database_that_comes_and_goes_is_told() -> None:
    """Its patience goes on while a transaction succeeds now and then."""
    guarded = Guarded()
    told = []
    for _ in range(6):
        told += guarded.away(10)
        guarded.well(5)
    assert len(told + guarded.away(10)) == 1


def test_while_the_database_is_there_another_way_tells_and_patience_goes_on() -> None:
    """Others of its transactions fail; when it goes away for good, nobody waits any more."""
    guarded = Guarded()
    guarded.well(120, failed=1)
    assert guarded.guard.take_told() == ()
    assert len(guarded.away(5)) == 1


def test_it_is_told_again_as_often_as_the_rule_says() -> None:
    """Nobody can acknowledge it meanwhile."""
    guarded = Guarded(repeat_every_ms=2 * MINUTE)
    told = guarded.away(75 + 300)
    assert [notice.is_repeat for notice in told] == [False, True, True]


def test_a_clock_that_is_set_back_keeps_it_from_nobody() -> None:
    """By a day; what was told at is then of the future."""
    guarded = Guarded(repeat_every_ms=2 * MINUTE)
    assert len(guarded.away(80)) == 1
    guarded.set_back_ms = 24 * 60 * MINUTE
    assert [notice.is_repeat for notice in guarded.away(300)] == [True, True, True]


def test_what_was_told_by_way_of_the_database_is_not_told_again() -> None:
    """Unless it went away a moment after: the word may not have come through."""
    for told_ago_ms, times in ((60_000, 0), (1000, 1)):
        first = Guarded()
        first.away(80)
        (row,) = first.guard.take_told()
        guarded = Guarded()
        told_at_ms = guarded.at.wall_ms + 5000 - told_ago_ms
        guarded.firing = [msgspec.structs.replace(row, told_at_ms=told_at_ms)]
        guarded.well(5)
        assert len(guarded.away(300)) == times


def test_what_is_silenced_is_told_when_the_silence_ends() -> None:
    """By the silences as they were read last."""
    guarded = Guarded()
    ends = WALL + guarded.now + 300_000
    silence = Silence(id="s", ends_at_ms=ends, reason="r", by="ann", created_at_ms=0)
    guarded.book = AlarmBook(guarded.book.rules, (silence,))
    assert guarded.away(295) == []
    assert len(guarded.away(10)) == 1


def test_rules_that_were_never_read_tell_nothing() -> None:
    """The manager was started while the database was away."""
    guarded = Guarded()
    guarded.book = UNREAD
    assert guarded.away(600) == []


def test_what_was_told_waits_to_be_stored_and_a_second_outage_is_told_again() -> None:
    """Also when that fails: it is taken again until it is stored."""
    guarded = Guarded()
    guarded.away(120)
    (row,) = guarded.guard.take_told()
    assert guarded.guard.take_told() == (row,)
    assert (row.rule, row.subject, row.resolved_at_ms, row.receivers) == ("failing", "database", 0, ("ops",))
    guarded.firing = [row]
    guarded.guard.stored()
    assert guarded.guard.take_told() == ()
    guarded.well(30)
    guarded.firing = []
    guarded.well(120)
    assert len(guarded.away(300)) == 1


def test_an_alarm_that_was_ended_by_another_manager_can_be_told_again() -> None:
    """It still seems to fire here, as its window is not past."""
    guarded = Guarded()
    guarded.away(120)
    guarded.guard.stored()
    guarded.firing = []
    guarded.well(5)
    assert len(guarded.away(120)) == 1
