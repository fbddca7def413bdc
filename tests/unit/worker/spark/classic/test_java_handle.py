"""A query in the worker's own JVM, by a JVM that is none."""

from __future__ import annotations

import json
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from worker.spark.backend import Activity
from worker.spark.classic.handle import JavaHandle

BUSY = {"addBatch": 200, "triggerExecution": 300}
IDLE = {"latestOffset": 2, "triggerExecution": 3}


class Record:
    """One of Spark's, which counts how often it was read."""

    def __init__(self, batch: int, at: str, durations: dict[str, int]) -> None:
        self.told = {"batchId": batch, "timestamp": at, "durationMs": durations}
        self.read = 0

    def batchId(self) -> int:  # noqa: N802 - Java's
        return cast("int", self.told["batchId"])

    def timestamp(self) -> str:
        return cast("str", self.told["timestamp"])

    def json(self) -> str:
        self.read += 1
        return json.dumps(self.told)


def started_with(trigger: str) -> Any:
    """A query of PySpark's."""
    query: Any = MagicMock()
    query._jsq.streamingQuery.return_value.trigger.return_value.toString.return_value = trigger
    return query


@pytest.mark.parametrize(
    ("trigger", "interval_ms"),
    [
        ("ProcessingTimeTrigger(2500)", 2500),
        ("ProcessingTimeTrigger(0)", None),
        ("AvailableNowTrigger", None),
    ],
)
def test_the_interval_of_a_query_is_its_trigger_s(trigger: str, interval_ms: int | None) -> None:
    """In milliseconds; without one no batch can be late."""
    handle = JavaHandle(MagicMock(), started_with(trigger), MagicMock())
    assert handle.interval_ms == interval_ms


def test_the_record_of_a_query_that_waits_is_read_once() -> None:
    """Spark shows it again and again, at every poll; the one of the batch that comes then is read."""
    query = started_with("ProcessingTimeTrigger(0)")
    handle = JavaHandle(MagicMock(), query, MagicMock())
    waiting, later, done = Record(1, "10:00", IDLE), Record(1, "10:10", IDLE), Record(1, "10:12", BUSY)
    heard = []
    for record in (waiting, waiting, waiting, later, later, done):
        query._jsq.lastProgress.return_value = record
        heard.append([told["timestamp"] for told in handle.progress(0)])
    assert heard == [["10:00"], [], [], ["10:10"], [], ["10:12"]]
    assert (waiting.read, later.read, done.read) == (1, 1, 1)


@pytest.mark.parametrize(
    ("trigger", "data", "message", "activity"),
    [
        (True, True, "Processing new data", Activity.WORKING),
        (True, False, "Getting offsets from KafkaV2", Activity.LOOKING),
        (False, True, "Waiting for next trigger", Activity.RESTING),
        (False, False, "Initializing sources", Activity.LOOKING),
    ],
)
def test_what_spark_is_at_is_told_by_its_status(
    *, trigger: bool, data: bool, message: str, activity: Activity
) -> None:
    """A query that begins is at something; one that was told to end is at nothing any more."""
    query = started_with("ProcessingTimeTrigger(0)")
    handle = JavaHandle(MagicMock(), query, MagicMock())
    status = query._jsq.status.return_value
    status.isTriggerActive.return_value = trigger
    status.isDataAvailable.return_value = data
    status.message.return_value = message
    assert handle.activity() is activity
    assert handle.is_resting() == (activity is not Activity.WORKING)
    query._jsq.isActive.return_value = False
    assert handle.activity() is Activity.RESTING
