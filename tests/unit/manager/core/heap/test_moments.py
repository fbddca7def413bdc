"""Figures of the last while, ever fewer of them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from manager.core.heap.marks import MARKS_KEPT, Doing, Marks
from manager.core.heap.moments import Moments

HOUR = 3_600_000


class Seen(NamedTuple):
    """A figure of one moment."""

    at_ms: int
    figure: int


def lowest(first: Seen, second: Seen) -> Seen:
    """As the oldest of both, with the lower figure."""
    return Seen(first.at_ms, min(first.figure, second.figure))


@given(st.lists(st.tuples(st.integers(1, 400_000), st.integers(0, 9)), min_size=1, max_size=300))
def test_no_more_are_kept_than_was_said_and_none_that_is_too_old(steps: list[tuple[int, int]]) -> None:
    """And the lowest figure of the time that they cover is among them."""
    moments = Moments(16, HOUR, lowest)
    at, told = 0, []
    for step, figure in steps:
        at += step
        told.append(Seen(at, figure))
        moments.add(told[-1])
        kept = [*moments]
        assert len(kept) <= 16
        assert [each.at_ms for each in kept] == sorted({each.at_ms for each in kept})
        covered = [each.figure for each in told if each.at_ms >= kept[0].at_ms]
        assert min(covered) == min(each.figure for each in kept)
    assert kept[-1].at_ms >= at - 2 * HOUR // 8


def test_an_hour_is_covered_evenly() -> None:
    """Each ten seconds is too much for a thousand workers."""
    moments = Moments(16, HOUR, lowest)
    for look in range(2000):
        moments.add(Seen(look * 10_000, 1))
    times = [each.at_ms for each in moments]
    steps = {later - former for former, later in pairwise(times)}
    assert max(steps) <= HOUR / 6
    assert times[-1] - times[0] >= HOUR / 2
    assert moments.since(times[3]) == [*moments][3:]


def test_batches_are_counted_from_both_sides() -> None:
    """Certainly within, and around at most; an unknown task has done none, a reset one neither."""
    marks = Marks("abc", HOUR)
    for look in range(5):
        marks.add(look * 100, {"a": Doing(10 * look), "b": Doing(100 - look)})
    assert marks.within(100, 399).batches("a") == 20
    assert marks.around(101, 299).batches("a") == 20
    assert marks.around(-50, 9_999).batches("a") == 40
    assert marks.within(101, 150).batches("a") == 0
    assert [marks.around(0, 400).batches(task) for task in "bc"] == [0, 0]


def test_a_task_that_was_not_known_yet_has_not_done_all_its_batches_at_once() -> None:
    """As after the takeover by another manager; before that it did as many as since, as far as is known."""
    marks = Marks("ab", HOUR)
    for look in range(9):
        doing = {"a": Doing(700_000 + look)}
        marks.add(look * 100, doing if look >= 4 else {})
    done = marks.around(0, 800)
    assert (done.batches("a"), done.batches_of_all("a"), done.batches_of_all("b")) == (4, 8, 0)
    assert marks.within(0, 400).batches_of_all("a") == 0


def test_a_state_that_was_not_known_has_not_grown() -> None:
    """It may have been large before; one that is dropped has shrunk to nothing."""
    marks = Marks("abc", HOUR)
    marks.add(0, {"b": Doing(1, 500)})
    marks.add(100, {"a": Doing(1, 700), "b": Doing(1, 600)})
    assert [marks.state_growth(task, 0) for task in "abc"] == [0, 100, 0]
    assert marks.state_growth("a", 200) == 0
    marks.add(200, {})
    assert marks.state_growth("b", 100) == -600


def test_marks_are_few() -> None:
    """Those of a hundred tasks each, for a thousand workers."""
    marks = Marks("a", HOUR)
    for look in range(1000):
        marks.add(look * 10_000, {})
        assert len(marks._marks) <= MARKS_KEPT
