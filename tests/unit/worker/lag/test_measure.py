"""From offsets to lag."""

from __future__ import annotations

from protocol.messages.lag import MOST_PARTITIONS
from worker.lag.measure import PartitionState, lags, total

NOW = 1_000_000


def test_what_is_between_the_last_batch_and_the_end_is_behind() -> None:
    """In offsets, and as the age of the first row in between; nothing in between is no age."""
    states = {"t": {0: PartitionState(0, 10, NOW - 500), 1: PartitionState(0, 7)}}
    first, second = lags({"t": {0: 4, 1: 7}}, states, NOW)
    assert (first.behind, first.behind_ms, first.committed, first.end) == (6, 500, 4, 10)
    assert (second.behind, second.behind_ms) == (0, 0)


def test_what_retention_has_eaten_is_lost_and_not_behind() -> None:
    """Nobody can read it any more."""
    [lag] = lags({"t": {0: 4}}, {"t": {0: PartitionState(6, 10)}}, NOW)
    assert (lag.behind, lag.lost) == (4, 2)
    [emptied] = lags({"t": {0: 4}}, {"t": {0: PartitionState(10, 10)}}, NOW)
    assert (emptied.behind, emptied.lost) == (0, 6)


def test_an_added_partition_is_unread_and_a_deleted_topic_is_gone() -> None:
    """Spark reads an added one from its first row."""
    states = {"t": {0: PartitionState(0, 4), 1: PartitionState(0, 3)}}
    assert [lag.behind for lag in lags({"t": {0: 4}, "gone": {0: 9}}, states, NOW)] == [0, 3]


def test_before_the_first_batch_nobody_knows() -> None:
    """Where the query will begin only Spark decides."""
    [lag] = lags({}, {"t": {0: PartitionState(0, 4)}}, NOW)
    assert (lag.committed, lag.behind, lag.end) == (None, None, 4)
    assert total([lag], NOW).rows is None


def test_a_topic_that_was_made_anew_is_not_behind_by_less_than_nothing() -> None:
    """Its end is before what was committed."""
    [lag] = lags({"t": {0: 9}}, {"t": {0: PartitionState(0, 4)}}, NOW)
    assert (lag.behind, lag.lost) == (0, 0)


def test_a_row_from_the_future_is_not_younger_than_now() -> None:
    """The clock of whoever wrote it is another one."""
    [lag] = lags({"t": {0: 4}}, {"t": {0: PartitionState(0, 10, NOW + 500)}}, NOW)
    assert lag.behind_ms == 0


def test_a_partition_that_nobody_answers_for_is_in_no_sum_and_always_told() -> None:
    """What has been read of it is known; of the others all is."""
    many = MOST_PARTITIONS + 5
    read = {"t": dict.fromkeys(range(many), 1)}
    states: dict[int, PartitionState | None] = {n: PartitionState(0, 9) for n in range(many)}
    states[many - 1] = None
    lag = total(lags(read, {"t": states}, NOW), NOW)
    assert (lag.rows, lag.unknown, lag.trouble) == (8 * (many - 1), 1, None)
    last = lag.partitions[-1]
    assert (last.partition, last.committed, last.end, last.behind) == (many - 1, 1, None, None)
    assert total(lags({}, {"t": {0: None}}, NOW), NOW).rows is None


def test_what_is_lost_counts_where_it_is_not_told_one_by_one_too() -> None:
    """A partition that has lost rows may be behind by none."""
    many = MOST_PARTITIONS + 5
    states = {"t": {n: PartitionState(3, 3 if n < 5 else 9) for n in range(many)}}
    lag = total(lags({"t": dict.fromkeys(range(many), 0)}, states, NOW), NOW)
    assert lag.lost == 3 * many
    assert lag.left_out == 5


def test_the_sums_are_over_all_and_those_told_are_the_furthest() -> None:
    """In order of topic and partition."""
    many = MOST_PARTITIONS + 5
    states = {"t": {n: PartitionState(0, n, NOW - n) for n in range(many)}}
    lag = total(lags({"t": dict.fromkeys(range(many), 0)}, states, NOW), NOW)
    assert lag.rows == sum(range(many))
    assert lag.behind_ms == many - 1
    assert [each.partition for each in lag.partitions] == list(range(5, many))
    assert lag.left_out == 5


def test_where_no_age_is_known_of_what_is_behind_there_is_none() -> None:
    """Rather than that of a partition that is not behind, which is none at all."""
    states = {"t": {0: PartitionState(0, 9), 1: PartitionState(0, 3)}}
    behind = lags({"t": {0: 4, 1: 3}}, states, NOW)
    assert [each.behind_ms for each in behind] == [None, 0]
    assert total(behind, NOW).behind_ms is None
    assert total(behind[1:], NOW).behind_ms == 0
