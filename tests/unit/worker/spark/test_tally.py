from __future__ import annotations

from typing import Any

from worker.query_engine import Progress, Totals
from worker.spark.progress import Tally


def record(batch_id: int, rows: int, **more: Any) -> dict[str, Any]:
    """A progress record as Spark writes it, cut down."""
    told = {"batchId": batch_id, "numInputRows": rows, "timestamp": "2013-01-01T00:00:00Z"}
    return {**told, "batchDuration": 412, "processedRowsPerSecond": 242.718, **more}


def test_before_the_first_batch_there_is_nothing() -> None:
    """None, not zeros."""
    assert Tally().last is None


def test_rows_add_up() -> None:
    """The figures are the last batch's; the total counts from the start of the query."""
    tally = Tally()
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


def test_what_a_source_tells_of_its_lag_is_passed_on() -> None:
    """And nothing where it tells nothing."""
    tally = Tally()
    tally.observe(record(0, 1, sources=[{"endOffset": 3, "latestOffset": 10}]))
    assert tally.last is not None
    assert tally.last.metrics["lag"] == {"offsets": 7}
    tally.observe(record(1, 1, sources=[{"endOffset": {"logOffset": 3}, "latestOffset": None}]))
    assert "lag" not in tally.last.metrics


def test_old_news_changes_nothing() -> None:
    """The same record may be seen many times, and older ones among the recent."""
    tally = Tally()
    for told in (record(5, 100), record(5, 100), record(4, 50)):
        tally.observe(told)
    assert tally.last is not None
    assert (tally.last.batch_id, tally.last.metrics["total_rows"]) == (5, 100)


def test_a_record_of_an_idle_query_is_no_batch() -> None:
    """It has the id of the batch to come, which no checkpoint knows of, and whose rows are counted later."""
    tally = Tally()
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
    tally = Tally()
    tally.observe({"batchId": 0, "numInputRows": 0, "timestamp": "t"})
    assert tally.last is not None
    assert tally.last.metrics["rows_per_second"] == 0.0
