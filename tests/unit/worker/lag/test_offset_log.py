"""What Spark's checkpoint says of topics."""

from __future__ import annotations

from typing import Any

import pytest

from worker.lag.offset_log import of_source, offsets_of

ENTRY = 'v1\n{"conf":{}}\n{"orders":{"0":23,"1":5}}\n{"logOffset":3}\n-\n{"paid":{"0":7}}\n42'


def test_the_lines_of_kafka_are_found_among_others() -> None:
    """Files, rates and sources that have read nothing yet stand in the same entry."""
    assert offsets_of(ENTRY) == [{"orders": {0: 23, 1: 5}}, {"paid": {0: 7}}]


@pytest.mark.parametrize("entry", ["", "v1", "v1\n{}", "v1\n{}\n{}", "v1\n{}\nnonsense"])
def test_an_entry_without_kafka_says_nothing(entry: str) -> None:
    """Nor does one that is cut off."""
    assert offsets_of(entry) == []


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({"subscribe": "orders, paid"}, {"orders", "paid"}),
        ({"SUBSCRIBE": "orders"}, {"orders"}),
        ({"subscribePattern": "or.*"}, {"orders"}),
        ({"subscribePattern": "or"}, set()),
        ({"subscribePattern": "("}, set()),
        ({"assign": '{"paid": [0]}'}, {"paid"}),
        ({"assign": "nonsense"}, set()),
        ({}, set()),
    ],
)
def test_a_source_has_the_topics_that_it_reads(options: dict[str, Any], topics: set[str]) -> None:
    """By its options, for the entry names topics only."""
    assert set(of_source(offsets_of(ENTRY), options)) == topics


def test_of_two_sources_that_read_one_topic_the_later_one_counts() -> None:
    """Nobody is told to be further than that."""
    lines: Any = [{"orders": {0: 23, 1: 5}}, {"orders": {0: 20, 1: 9}}]
    assert of_source(lines, {"subscribe": "orders"}) == {"orders": {0: 20, 1: 5}}
