"""The life of one alarm, step by step."""

from __future__ import annotations

import pytest

from manager.core.alarms.facts import UNKNOWN, Reading
from manager.core.alarms.life import FIRING, OK, Moment, Standing, Verdict, look
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, rule

RULE = rule(threshold=100, clear_threshold=50, for_ms=MINUTE, clear_after_ms=2 * MINUTE)
NOW = 10 * MINUTE
HIGH, MIDDLE, LOW = Reading(101.0), Reading(70.0), Reading(50.0)


def pending(since: int) -> Standing:
    return Standing(pending_since=since)


def clearing(since: int) -> Standing:
    return Standing(is_firing=True, clearing_since=since)


@pytest.mark.parametrize(
    ("before", "reading", "after", "verdict"),
    [
        (OK, LOW, OK, Verdict.STAYS),
        (OK, Reading(100.0), OK, Verdict.STAYS),
        (OK, HIGH, pending(NOW), Verdict.STAYS),
        (OK, UNKNOWN, OK, Verdict.STAYS),
        (pending(NOW - MINUTE + 1), HIGH, pending(NOW - MINUTE + 1), Verdict.STAYS),
        (pending(NOW - MINUTE), HIGH, FIRING, Verdict.FIRES),
        (pending(NOW - MINUTE), UNKNOWN, pending(NOW - MINUTE), Verdict.STAYS),
        (pending(NOW - MINUTE), LOW, OK, Verdict.STAYS),
        (FIRING, HIGH, FIRING, Verdict.STAYS),
        (FIRING, MIDDLE, FIRING, Verdict.STAYS),
        (FIRING, UNKNOWN, FIRING, Verdict.STAYS),
        (FIRING, LOW, clearing(NOW), Verdict.STAYS),
        (FIRING, Reading(10.0, at_least=True), FIRING, Verdict.STAYS),
        (clearing(NOW - 2 * MINUTE + 1), LOW, clearing(NOW - 2 * MINUTE + 1), Verdict.STAYS),
        (clearing(NOW - 2 * MINUTE), LOW, OK, Verdict.RESOLVES),
        (clearing(NOW - 2 * MINUTE), MIDDLE, FIRING, Verdict.STAYS),
        (clearing(NOW - 2 * MINUTE), UNKNOWN, clearing(NOW - 2 * MINUTE), Verdict.STAYS),
        (OK, Reading(101.0, at_least=True), pending(NOW), Verdict.STAYS),
        (OK, Reading(101.0, since_ms=WALL - MINUTE), FIRING, Verdict.FIRES),
        (OK, Reading(101.0, since_ms=WALL - MINUTE + 1), pending(NOW), Verdict.STAYS),
    ],
)
def test_what_becomes_of_an_alarm(
    before: Standing, reading: Reading, after: Standing, verdict: Verdict
) -> None:
    """Each state with each kind of reading: the unknown changes nothing, two thresholds, two patiences."""
    assert look(RULE, reading, before, Moment(NOW, WALL)) == (after, verdict)


def test_nothing_fires_before_a_group_has_settled() -> None:
    """Of a group that was taken up a moment ago; the patience goes on meanwhile."""
    at = Moment(NOW, WALL, may_fire=False)
    assert look(RULE, HIGH, pending(0), at) == (pending(0), Verdict.STAYS)


def test_without_a_threshold_of_its_own_an_alarm_ends_where_it_began() -> None:
    """One threshold does for both."""
    plain = rule(threshold=100)
    assert look(plain, Reading(100.0), FIRING, Moment(NOW, WALL)) == (OK, Verdict.RESOLVES)
