"""Which offsets of Kafka's topics a check looks at."""

from __future__ import annotations

import json

from worker.checks.offsets import window, with_window
from worker.lag.measure import PartitionState

TOPICS = {"t": {0: PartitionState(100, 200), 1: PartitionState(5, 8), 2: PartitionState(7, 7)}}
OPTIONS = {"subscribe": "t"}


def test_a_few_of_each_partition_at_the_beginning() -> None:
    """No more than there are."""
    found = window(TOPICS, OPTIONS, "beginning", 30)
    assert found is not None
    assert found.starting == {"t": {"0": 100, "1": 5, "2": 7}}
    assert found.ending == {"t": {"0": 110, "1": 8, "2": 7}}
    assert found.rows == 13


def test_the_last_of_each_partition_at_the_end() -> None:
    """Up to where it ends now."""
    found = window(TOPICS, OPTIONS, "end", 6)
    assert found is not None
    assert found.starting == {"t": {"0": 198, "1": 6, "2": 7}}
    assert found.ending == {"t": {"0": 200, "1": 8, "2": 7}}


def test_only_partitions_that_the_source_reads() -> None:
    """Spark refuses offsets of others."""
    found = window(TOPICS, {"assign": '{"t": [1]}'}, "beginning", 100)
    assert found is not None
    assert found.ending == {"t": {"1": 8}}


def test_a_topic_that_is_not_there() -> None:
    """There is nothing to read."""
    assert window({}, OPTIONS, "end", 10) is None


def test_where_the_definition_begins_gives_way() -> None:
    """Whatever way it says so, in whatever case; the rest stays."""
    options = {
        "subscribe": "t",
        "startingoffsets": "latest",
        "endingTimestamp": "1",
        "maxOffsetsPerTrigger": 5,
    }
    assert with_window(options, None) == {
        "subscribe": "t",
        "maxOffsetsPerTrigger": 5,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }
    found = window(TOPICS, OPTIONS, "end", 6)
    assert json.loads(with_window(options, found)["startingOffsets"]) == {"t": {"0": 198, "1": 6, "2": 7}}
