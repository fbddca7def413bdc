from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkException

from worker.query_engine import QueryError
from worker.spark.causes import describe, describe_remote
from worker.spark.connect.handle import RemoteHandle, failure_of, failure_text, record_of
from worker.spark.progress import ProgressTracker
from worker.spark.settings import SparkSettings

JAVA = """\
(STREAM_FAILED) [TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030
=== Streaming Query ===
Identifier: t

JVM stacktrace:
org.apache.spark.sql.streaming.StreamingQueryException: [TASK_WRITE_FAILED] Task failed
\tat org.apache.spark.A.b(C.scala:1)
Caused by: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.A.b(C.scala:1)
Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] wrong SQLSTATE: P0001
\t... 3 more"""


@pytest.mark.parametrize(
    "ended",
    [
        QueryError("task t is fenced", fenced=True),
        QueryError('ValueError: {"a": "}"}\n\nTraceback:\n  File "x", line 1\n', fenced=False),
    ],
)
def test_a_failure_comes_through_spark_s_own_words(ended: QueryError) -> None:
    """Whatever the cause looks like, with Spark's text around it."""
    text = (
        f"(STREAM_FAILED) [PYTHON_EXCEPTION] Found error: Traceback\nX: {failure_text(ended)}\n SQLSTATE: 1"
    )
    assert "\n" not in failure_text(ended)
    assert failure_of(PySparkException(f"{text}\n\nJVM stacktrace:\nat a.b")) == ended


def test_a_failure_of_spark_s_own() -> None:
    """A text that only looks like one of ours does not hide what Spark says."""
    ended = failure_of(PySparkException(f"[A.B] sparkherd:{{no}} is wrong\n\n{JAVA}"))
    assert ended.cause is not None
    assert not ended.fenced
    assert ended.cause.startswith("[USER_RAISED_EXCEPTION] wrong\n")


def test_a_query_that_is_taken_between_two_questions_says_so() -> None:
    """A new owner may close its session at any moment: that is its end, and no trouble with watching it."""

    class Taken:
        isActive = True  # noqa: N815 - PySpark's name

        @property
        def status(self) -> None:
            raise SparkException("[INVALID_HANDLE.SESSION_CLOSED] It is closed.")

    query: Any = Taken()
    handle = RemoteHandle(query, lambda: False, is_bounded=False, commits_late=False)
    assert not handle.has_terminated()
    assert handle.is_resting()
    failure = handle.failure()
    assert failure is not None
    assert "another worker has taken the task over" in failure.cause
    assert "another worker has taken the task over" in handle.stopped, "it is stopped before that is closed"


def test_the_headline_of_a_remote_error() -> None:
    """The innermost condition, as with an error of the worker's own JVM; all of the text follows."""
    said = describe_remote(JAVA)
    assert said.splitlines()[0] == "[USER_RAISED_EXCEPTION] wrong"
    assert "C.scala:1" in said
    assert describe(PySparkException(JAVA)) == said
    assert describe_remote("[PATH_NOT_FOUND] Path does not exist: /a. SQLSTATE: 42K03").startswith(
        "[PATH_NOT_FOUND] Path does not exist: /a.\n"
    )


def test_what_is_shown_of_a_server_s_url() -> None:
    """Where it is, and nothing of its parameters."""
    for remote in ("sc://host:15002/;token=s3cret;user_id=a", "sc://host:15002/", "sc://host:15002"):
        settings = SparkSettings(app_name="a", checkpoint_root="cp", remote=remote)
        assert settings.place == "sc://host:15002"
    assert SparkSettings(app_name="a", checkpoint_root="cp").place == "local[2]"


def _source(rows: int, end: str | None, latest: str | None, **metrics: str) -> SimpleNamespace:
    return SimpleNamespace(
        numInputRows=rows,
        processedRowsPerSecond=2.0,
        endOffset=end,
        latestOffset=latest,
        metrics=metrics,
    )


def test_a_record_of_progress_from_the_server() -> None:
    """Rows of all sources together, and how far they are ahead, as from a JVM of the worker's own."""
    sources = [_source(3, "7", "9"), _source(4, "v1", None, numFilesOutstanding="5"), _source(0, None, None)]
    told = SimpleNamespace(
        batchId=2,
        batchDuration=40,
        timestamp="2026-01-01T00:00:00Z",
        sources=sources,
        durationMs={"addBatch": 30, "triggerExecution": 40},
        eventTime={"watermark": "2025-12-31T23:59:30.000Z"},
        stateOperators=[
            SimpleNamespace(
                numRowsTotal=9,
                memoryUsedBytes=2000,
                numRowsDroppedByWatermark=4,
                customMetrics={"stateOnCurrentVersionSizeBytes": 700},
            )
        ],
    )
    tally = ProgressTracker()
    tally.observe(record_of(told), 70)
    assert tally.last is not None
    assert tally.last.batch_id == 2
    assert tally.last.metrics == {
        "rows": 7,
        "total_rows": 7,
        "rows_per_second": 6.0,
        "batch_ms": 40,
        "at": "2026-01-01T00:00:00Z",
        "sink_rows": 70,
        "lag": {"offsets": 2.0, "files": 5.0},
        "phases_ms": {"planning": 0, "reading": 0, "writing": 30, "commit": 0},
        "state": {"rows": 9, "bytes": 700, "memory_bytes": 2000},
        "watermark_ms": 1_767_225_570_000,
        "watermark_lag_ms": 30_000,
    }
    assert tally.last.totals.costs.late_rows == 4
