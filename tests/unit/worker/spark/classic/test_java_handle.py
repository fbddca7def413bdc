"""A query in the worker's own JVM, by a JVM that is none."""

from __future__ import annotations

import json
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

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


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_query_that_was_told_to_end_rests_when_its_last_batch_is_done(*, is_alive: bool) -> None:
    """Spark takes it for over at once; its thread is not before that."""
    query = started_with("ProcessingTimeTrigger(0)")
    query._jsq.isActive.return_value = False
    query._jsq.status.return_value.isTriggerActive.return_value = True
    query._jsq.status.return_value.isDataAvailable.return_value = True
    query._jsq.streamingQuery.return_value.queryExecutionThread.return_value.isAlive.return_value = is_alive
    handle = JavaHandle(MagicMock(), query, MagicMock())
    assert handle.is_resting() != is_alive


def test_a_spark_whose_queries_have_no_such_state_is_left_alone() -> None:
    """The gate refuses the next batch there."""
    query = started_with("ProcessingTimeTrigger(0)")
    stream = query._jsq.streamingQuery.return_value
    handle = JavaHandle(MagicMock(), query, MagicMock())
    handle.begin_no_more()
    stream.state.return_value.set.assert_called_once()
    stream.state.side_effect = Py4JError("Method state([]) does not exist")
    handle.begin_no_more()
    stream.state.return_value.set.assert_called_once()
