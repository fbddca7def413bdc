from __future__ import annotations

from typing import Any

import pytest

from worker.left_out import LeftOut
from worker.query_engine import Progress, Totals
from worker.spark.progress import ProgressTracker, lag_of


def record(batch_id: int, rows: int, **more: Any) -> dict[str, Any]:
    """A progress record as Spark writes it, cut down."""
    told = {"batchId": batch_id, "numInputRows": rows, "timestamp": "2013-01-01T00:00:00Z"}
    return {**told, "batchDuration": 412, "processedRowsPerSecond": 242.718, **more}


def test_before_the_first_batch_there_is_nothing() -> None:
    """None, not zeros."""
    assert ProgressTracker().last is None


def test_rows_add_up() -> None:
    """The figures are the last batch's; the total counts from the start of the query."""
    tally = ProgressTracker()
    tally.observe(record(5, 100))
    tally.observe(record(6, 30), sink_rows=1030)
    assert tally.last == Progress(
        6,
        {
            "rows": 30,
            "total_rows": 130,
            "rows_per_second": 242.7,
            "batch_ms": 412,
            "at": "2013-01-01T00:00:00Z",
            "sink_rows": 1030,
        },
        Totals(batches=2, rows=130, busy_ms=824),
    )


def test_the_state_of_all_operators_is_one_figure() -> None:
    """A join has several stores; a query without state has no figure, and none of an earlier batch."""
    tally = ProgressTracker()
    operators = [{"numRowsTotal": 3, "memoryUsedBytes": 700}, {"numRowsTotal": 4, "memoryUsedBytes": 800}]
    tally.observe(record(5, 1, stateOperators=operators))
    assert tally.last is not None
    assert tally.last.metrics["state"] == {"rows": 7, "memory_bytes": 1500}
    tally.observe(record(6, 1, stateOperators=[]))
    assert "state" not in tally.last.metrics


def test_what_is_left_out_is_told_from_the_start_of_the_query_already() -> None:
    """It is no figure of one batch, so it is not added up; what it was for is no figure of the engine's."""
    tally = ProgressTracker()
    tally.observe(record(0, 100), left_out=LeftOut(2, 1, {"positive": 3}))
    tally.observe(record(1, 100), left_out=LeftOut(2, 4, {"positive": 3, "unreadable": 3}))
    assert tally.last is not None
    assert tally.last.totals == Totals(2, 200, 824, LeftOut(2, 4, {"positive": 3, "unreadable": 3}))
    assert tally.last.metrics.keys().isdisjoint({"dropped", "quarantined", "left_out"})


def test_what_a_source_tells_of_its_lag_is_passed_on() -> None:
    """And nothing where it tells nothing."""
    tally = ProgressTracker()
    tally.observe(record(0, 1, sources=[{"endOffset": 3, "latestOffset": 10}]))
    assert tally.last is not None
    assert tally.last.metrics["lag"] == {"offsets": 7}
    tally.observe(record(1, 1, sources=[{"endOffset": {"logOffset": 3}, "latestOffset": None}]))
    assert "lag" not in tally.last.metrics


def test_old_news_changes_nothing() -> None:
    """The same record may be seen many times, and older ones among the recent."""
    tally = ProgressTracker()
    for told in (record(5, 100), record(5, 100), record(4, 50)):
        tally.observe(told)
    assert tally.last is not None
    assert (tally.last.batch_id, tally.last.metrics["total_rows"]) == (5, 100)


def test_a_record_of_an_idle_query_is_no_batch() -> None:
    """It has the id of the batch to come, which no checkpoint knows of, and whose rows are counted later."""
    tally = ProgressTracker()
    tally.observe(record(0, 0, durationMs={"latestOffset": 2, "triggerExecution": 3}))
    assert tally.batch_id == -1
    tally.observe(record(0, 10, durationMs={"addBatch": 200, "triggerExecution": 300}))
    tally.observe(record(1, 0, durationMs={"latestOffset": 2, "triggerExecution": 3}))
    assert tally.batch_id == 0
    tally.observe(record(1, 5, durationMs={"addBatch": 200, "triggerExecution": 300}))
    assert tally.last is not None
    assert (tally.last.batch_id, tally.last.metrics["total_rows"]) == (1, 15)


def test_a_rate_that_spark_leaves_out() -> None:
    """A batch of no time has no rate."""
    tally = ProgressTracker()
    tally.observe({"batchId": 0, "numInputRows": 0, "timestamp": "t"})
    assert tally.last is not None
    assert tally.last.metrics["rows_per_second"] == 0.0


KAFKA = {
    "startOffset": {"orders": {"0": 1, "1": 1}},
    "endOffset": {"orders": {"0": 10, "1": 20}},
    "latestOffset": {"orders": {"0": 15, "1": 20, "2": 4}},
    "metrics": {"avgOffsetsBehindLatest": "1.6", "maxOffsetsBehindLatest": "5"},
}
"""As Spark's Kafka source tells it; partition 2 has just been added."""


@pytest.mark.parametrize(
    ("source", "lag"),
    [
        (KAFKA, {"offsets": 9}),
        ({"endOffset": 40, "latestOffset": 41}, {"offsets": 1}),
        ({"endOffset": 41, "latestOffset": 40}, {"offsets": 0}),
        (
            {"metrics": {"numFilesOutstanding": "3", "numBytesOutstanding": "2048"}},
            {"files": 3, "bytes": 2048},
        ),
        ({"endOffset": {"logOffset": 3}, "latestOffset": None}, {}),
        ({"endOffset": {"v": 3}, "latestOffset": "opaque"}, {}),
        ({"endOffset": {"v": "a"}, "latestOffset": {"v": "b"}}, {}),
        ({"endOffset": True, "latestOffset": True}, {}),
        ({"metrics": {"numFilesOutstanding": "many"}}, {}),
        ({}, {}),
    ],
)
def test_a_source_lags_by_what_it_tells(source: dict[str, Any], lag: dict[str, float]) -> None:
    """Whatever its offsets look like; no figure is made up."""
    assert lag_of([source]) == lag


def test_sources_add_up_by_unit() -> None:
    """A join of two streams has two of them."""
    assert lag_of([KAFKA, {"endOffset": 1, "latestOffset": 2}, {}]) == {"offsets": 10}
