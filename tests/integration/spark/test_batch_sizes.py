"""Small batches come to the driver in one piece, wide and large ones from where they are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark import SparkContext

from worker.spark.classic import query_output
from worker.spark.classic.rows import FEW_PARTITIONS, RddBatch

if TYPE_CHECKING:
    from worker.sinks.parts import Part, Rows, Take

ONCE = {"available_now": True}
NUMBERS = "SELECT id % 100 AS k, COUNT(*) AS n FROM source GROUP BY 1"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, str]]:
    """Batch, partitions and the way that each batch has taken, with those tried in vain."""
    taken = []

    class NotedBatch(RddBatch):
        def collect(self, limit: int) -> Rows | None:
            rows = super().collect(limit)
            taken.append((self.mark.batch_id, self.partitions, "in vain" if rows is None else "collected"))
            return rows

        def scatter(self, take: Take) -> list[Part]:
            taken.append((self.mark.batch_id, self.partitions, "scattered"))
            return super().scatter(take)

    monkeypatch.setattr(query_output, "RddBatch", NotedBatch)
    return taken


async def test_small_batches_in_one_piece(start: Any, flights: Any, database: Any, ways: Any) -> None:
    """A file a batch is a partition a batch: no Python process is asked to take its rows."""
    flights.add(files=2)
    query = await start(source=flights.source, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert ways == [(0, 1, "collected"), (1, 1, "collected")]
    assert database.ids() == flights.ids


def jobs_of(query: Any) -> list[int]:
    """The jobs that Spark has run for a query."""
    tracker = SparkContext.getOrCreate().statusTracker()
    return list(tracker.getJobIdsForGroup(str(query._handle.query.runId)))


@pytest.mark.parametrize("files", [FEW_PARTITIONS, FEW_PARTITIONS + 1])
async def test_many_partitions(*, start: Any, flights: Any, database: Any, ways: Any, files: int) -> None:
    """A few are looked into, all in one job; more are not, however few rows they have."""
    flights.add(files=files)
    source = {**flights.source, "options": {"path": str(flights.folder)}}
    conf = {"spark.sql.files.openCostInBytes": "1000", "spark.sql.files.maxPartitionBytes": "1000"}
    query = await start(source=source, sink=database.sink(), trigger=ONCE, spark_conf=conf)
    assert await query.ended() is None
    few = [(0, files, "collected")]
    assert ways == (few if files == FEW_PARTITIONS else [(0, files, "in vain"), (0, files, "scattered")])
    assert len(jobs_of(query)) == 1
    assert database.ids() == flights.ids


@pytest.mark.parametrize("store", ["default", ROCKSDB])
async def test_a_state_that_is_computed_twice(
    *, start: Any, flights: Any, database: Any, ways: Any, monkeypatch: Any, store: str
) -> None:
    """Of a batch that is larger than it was taken to be, half is computed in vain; its counts are right."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 40)
    flights.add(rows=10)
    flights.add(rows=200)
    flights.add(rows=90)
    conf = {} if store == "default" else {"spark.sql.streaming.stateStore.providerClass": store}
    query = await start(
        source=flights.source,
        sql=NUMBERS,
        sink=database.sink("counts", mode="upsert", key=["k"]),
        output_mode="update",
        trigger=ONCE,
        spark_conf=conf,
    )
    assert await query.ended() is None
    assert ways == [(0, 2, "collected"), (1, 2, "in vain"), (1, 2, "scattered"), (2, 2, "scattered")]
    assert database.query("SELECT k, n FROM counts ORDER BY k") == [(k, 3) for k in range(100)]
