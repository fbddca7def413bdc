"""What Spark's checkpoint says of topics."""

from __future__ import annotations

from typing import Any

import pytest

from worker.lag.offset_log import furthest_behind, initial_of, of_place, offsets_in, offsets_of

ENTRY = 'v1\n{"conf":{}}\n{"orders":{"0":23,"1":5}}\n{"logOffset":3}\n-\n{"paid":{"0":7}}\n42'


def test_each_line_is_read_and_those_of_other_sources_say_nothing() -> None:
    """Files, rates and sources that have read nothing yet stand in the same entry."""
    assert offsets_of(ENTRY) == [{"orders": {0: 23, 1: 5}}, None, None, {"paid": {0: 7}}, None]


@pytest.mark.parametrize("entry", ["", "v1", "v1\n{}", "v1\n{}\nnonsense"])
def test_an_entry_without_kafka_says_nothing(entry: str) -> None:
    """Nor does one that is cut off."""
    assert not any(offsets_of(entry))


def test_a_source_that_has_found_no_topic_has_begun_all_the_same() -> None:
    """Which is another thing than a line that says nothing."""
    assert offsets_of("v1\n{}\n{}") == [{}]


def test_where_a_source_has_begun_is_kept_behind_a_version() -> None:
    """Before which Spark puts a zero, for the sake of Spark 2.1."""
    assert initial_of('\0v1\n{"orders":{"0":4}}') == {"orders": {0: 4}}
    assert initial_of('v1\n{"path":"file:///in/1.json","timestamp":1,"batchId":0}') is None


def test_a_record_of_a_batch_has_an_end_for_each_source() -> None:
    """None for one whose offsets are of another kind, or that has none."""
    record = {"sources": [{"endOffset": {"t": {"0": 3}}}, {"endOffset": 7}, {}]}
    assert offsets_in(record) == [{"t": {0: 3}}, None, None]


def test_the_lines_of_a_source_are_those_that_the_plan_has_for_it() -> None:
    """Two may name the same topic, in two clusters; one may be read twice."""
    lines: Any = [{"t": {0: 23}}, {"t": {0: 5}}, {"t": {0: 22}}]
    order = ["sources.a", "sources.b", "sources.a"]
    assert of_place(lines, order, "sources.b") == [{"t": {0: 5}}]
    assert of_place(lines, order, "sources.a") == [{"t": {0: 23}}, {"t": {0: 22}}]
    assert of_place(lines, order, "sources.c") == []


def test_where_the_order_does_not_fit_nobody_guesses() -> None:
    """The query was another one when its order was noted."""
    assert of_place([{"t": {0: 23}}], ["sources.a", "sources.b"], "sources.a") == []


def test_of_a_source_that_is_read_twice_the_later_one_counts() -> None:
    """Nobody is told to be further than that."""
    lines: Any = [{"orders": {0: 23, 1: 5}}, None, {"orders": {0: 20, 1: 9}}]
    assert furthest_behind(lines) == {"orders": {0: 20, 1: 5}}
