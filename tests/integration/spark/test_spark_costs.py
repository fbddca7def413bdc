"""What batches cost, by Spark's own words: the names of its figures are those that we look for."""

from __future__ import annotations

import asyncio
import json
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs
from pyspark.sql.functions import udf

from worker.spark.classic.spills import Spills

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "id LONG, at TIMESTAMP, user STRING"
AT_ONCE = {"available_now": True}
WATERMARK_MS = 1_767_269_940_000
"""Ten minutes before the last event that came in time, of 12:29."""
SPILL_AFTER = (
    "spark.sql.windowExec.buffer.in.memory.threshold",
    "spark.sql.windowExec.buffer.spill.threshold",
)
"""Rows that a window may keep in memory."""


class Events:
    """A folder of events, a file a batch, each event with a time of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = 0
        folder.mkdir()

    def add(self, hour: int, first: int, rows: int) -> None:
        """A file of events, one a minute of an hour."""
        lines = [
            {"id": first + n, "at": f"2026-01-01 {hour:02}:{n:02}:00", "user": f"u{n % 3}"}
            for n in range(rows)
        ]
        self.files += 1
        file = self.folder / f"{self.files}.json"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(file, (self.files, self.files))  # Spark takes them by the time they were changed

    @property
    def source(self) -> dict[str, Any]:
        """With a watermark of ten minutes."""
        return {
            "format": "json",
            "schema": SCHEMA,
            "options": {"path": str(self.folder), "maxFilesPerTrigger": 1},
            "watermark": {"column": "at", "delay": "10 minutes"},
        }


@pytest.fixture
def events(tmp_path: Path) -> Events:
    """Two batches in order, one of ten rows that are hours too late, and one more."""
    made = Events(tmp_path / "events")
    made.add(10, 0, 30)
    made.add(12, 30, 30)
    made.add(9, 60, 10)
    made.add(12, 70, 1)
    return made


async def run(start: Any, **definition: Any) -> Any:
    """The progress of a query that reads all there is."""
    query = await start(trigger=AT_ONCE, sink={"format": "noop"}, **definition)
    assert await query.ended() is None
    return query.progress()


JOIN = (
    "SELECT a.id, b.user FROM a JOIN b ON a.id = b.id"
    " AND b.at BETWEEN a.at - INTERVAL 1 HOUR AND a.at + INTERVAL 1 HOUR"
)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT window(at, '5 minutes') AS w, count(*) AS n FROM source GROUP BY 1", ()),
        ("SELECT session_window(at, '5 minutes') AS w, user, count(*) AS n FROM source GROUP BY 1, 2", ()),
        ("SELECT DISTINCT id, at FROM source", ()),
        (JOIN, ("a", "b")),
    ],
    ids=["windows", "sessions", "duplicates", "join"],
)
async def test_a_query_with_a_state_tells_it(
    *, start: Any, events: Events, sql: str, names: tuple[str, ...]
) -> None:
    """Rows, size and memory of the state, the watermark, how many rows came too late, and all phases."""
    read = {"sources": dict.fromkeys(names, events.source)} if names else {"source": events.source}
    progress = await run(start, sql=sql, **read)
    assert progress.metrics["state"].keys() == {"rows", "bytes", "memory_bytes"}
    assert progress.metrics["state"]["memory_bytes"] > 0
    assert progress.metrics["watermark_ms"] == WATERMARK_MS
    assert progress.metrics["watermark_lag_ms"] > 0
    assert progress.totals.costs.late_rows > 0
    phases = progress.totals.costs.phases
    assert all(structs.astuple(phases))
    assert 0.5 * progress.totals.busy_ms < phases.total <= progress.totals.busy_ms


async def test_a_query_without_a_state_has_none(start: Any, events: Events) -> None:
    """Nor are rows of it too late, whatever their watermark."""
    progress = await run(start, source=events.source)
    assert "state" not in progress.metrics
    assert progress.totals.costs.late_rows is None
    assert progress.totals.costs.spilled_bytes == 0


async def test_what_a_batch_spills_is_counted(*, start: Any, events: Events, entrypoint: Any) -> None:
    """Of its own jobs, whichever they are; here one that may keep ten rows in memory."""

    def count(context: Any) -> Any:
        def write(frame: Any, _: int) -> None:
            counted = frame.selectExpr("*", "count(*) OVER (PARTITION BY 1) AS n")
            counted.write.format("noop").mode("overwrite").save()

        frame = context.spark.readStream.schema(SCHEMA).json(str(events.folder))
        return context.foreach_batch(frame, write).trigger(availableNow=True)

    query = await start(entrypoint=entrypoint(count), spark_conf=dict.fromkeys(SPILL_AFTER, "10"))
    assert await query.ended() is None
    assert query.progress().totals.costs.spilled_bytes > 0


async def test_a_batch_that_outlasts_its_trigger_is_late(start: Any, events: Events) -> None:
    """No batch is done in a millisecond; all are within an hour."""
    late = []
    for task, interval in (("quick", "1 millisecond"), ("slow", "1 hour")):
        query = await start(
            task, source=events.source, sink={"format": "noop"}, trigger={"processing_time": interval}
        )
        while query.progress() is None:
            await asyncio.to_thread(query.poll)
        late.append(query.progress().totals.costs.late_batches)
        await query.stop(0)
    assert late[0] >= 1
    assert late[1] == 0


async def test_what_a_worker_takes_of_its_machine(
    *, start: Any, engine: Any, events: Events, entrypoint: Any, spark: Any
) -> None:
    """Heap, collections, direct memory, processes of Python, checkpoints: all of it, by the second look."""

    def shout(context: Any) -> Any:
        frame = context.spark.readStream.schema(SCHEMA).json(str(events.folder))
        loud = frame.select(udf(str.upper, "string")(frame.user).alias("user"))
        return loud.writeStream.format("noop").trigger(availableNow=True)

    query = await start(entrypoint=entrypoint(shout))
    assert await query.ended() is None
    await engine.resources(query.spec.group)
    await asyncio.to_thread(spark._jvm.java.lang.System.gc)
    seen = await engine.resources(query.spec.group)
    told = msgspec.to_builtins(seen)
    assert [name for name, value in told.items() if value is None] == ["loop_lag_ms"]
    assert 0 < seen.heap_live_bytes <= seen.heap_after_gc_bytes < seen.heap_max_bytes
    assert 0 < seen.heap_bytes <= seen.heap_max_bytes
    assert 0 <= seen.gc_share <= 1
    assert seen.direct_bytes > 0
    assert seen.python_processes >= 1
    assert seen.python_bytes > 1_000_000
    assert 0 < seen.checkpoint_bytes < seen.checkpoint_disk_bytes
    assert 0 < seen.checkpoint_free_bytes < seen.checkpoint_disk_bytes


def test_stages_that_spark_has_dropped_cost_a_query_its_figures_only(spark: Any) -> None:
    """Of too many, Spark drops those first that it has passed over: those of the job that has just ended."""
    context = spark.sparkContext
    chain = context.parallelize([1], 1)
    for _ in range(int(context.getConf().get("spark.ui.retainedStages"))):
        chain = chain.repartition(1)
    context.setJobGroup("of-many-stages", "")
    chain.count()
    chain.count()
    context.setLocalProperty("spark.jobGroup.id", None)
    query = SimpleNamespace(
        runId=lambda: SimpleNamespace(toString=lambda: "of-many-stages"),
        sparkSession=lambda: spark._jsparkSession,
    )
    assert Spills(spark._jvm, query).total() == 0
