from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.ownership import ClaimResponse
from tests.fakes.manager import granted
from tests.fakes.turns import eventually
from tests.unit.worker.tasks.bench import Bench
from worker.background import BackgroundTasks
from worker.query_engine import QueryError
from worker.spark.classic import query_output
from worker.spark.classic.rows import RddBatch
from worker.spark.query import SparkQuery

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.sinks.parts import Part, Rows, Take
    from worker.spark.engine import SparkEngine

SLOW = "SELECT id, reflect('java.lang.Thread', 'sleep', 10000L) AS never FROM source"


@pytest.fixture
def _java_in_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's SQL may not call Java; these tests have it sleep all the same."""
    monkeypatch.setattr("worker.spark.classic.query_session.drop_escapes", lambda _session: None)


@pytest.fixture
def hold_batch(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes one batch of the SQL sink pause when it has been computed."""

    def hold(batch_id: int) -> None:
        class HeldBatch(RddBatch):
            def collect(self, limit: int) -> Rows | None:
                rows = super().collect(limit)
                if self.mark.batch_id == batch_id and not stage.go_on.is_set():
                    stage.pause()
                    self._check()
                return rows

        monkeypatch.setattr(query_output, "RddBatch", HeldBatch)

    return hold


async def test_a_stop_lets_the_batch_in_flight_finish(
    *, start: Any, flights: Any, database: Any, stage: Any, hold_batch: Any, jvm_log: Any
) -> None:
    """The batch is written and committed, the next one is not even planned, and the log has no word of it."""
    flights.add(files=5)
    hold_batch(1)
    query = await start(source=flights.source, sink=database.sink())
    await stage.until_reached()
    stopping = asyncio.create_task(query.stop(30))
    await eventually(lambda: not query._handle.query.isActive)
    stage.go_on.set()
    await stopping
    assert await query.ended() is None
    assert database.ids() == flights.ids[:20]
    assert query._handle.query.lastProgress["batchId"] == 1
    assert await asyncio.to_thread(query._session.checkpoint.last, "offsets") == 1
    assert not query._handle.query.isActive
    said = jvm_log.all()
    assert "StackOverflowError" not in said
    assert "ERROR" not in said


async def test_a_batch_that_takes_too_long_is_cut(
    *, start: Any, flights: Any, database: Any, stage: Any, hold_batch: Any, jvm_log: Any, catch_up: Any
) -> None:
    """Nothing of it is written, the stop is a clean one all the same, and the next owner does it anew."""
    flights.add(files=3)
    hold_batch(1)
    query = await start(source=flights.source, sink=database.sink())
    await stage.until_reached()
    stopping = asyncio.create_task(query.stop(0))
    await asyncio.to_thread(query._gate._cut.wait)
    stage.go_on.set()
    await stopping
    assert await query.ended() is None
    assert database.ids() == flights.ids[:10]
    assert "StackOverflowError" not in jvm_log.all()
    successor = await start(token=2, source=flights.source, sink=database.sink())
    await catch_up(successor)
    assert database.ids() == flights.ids


@pytest.mark.usefixtures("_java_in_sql")
@pytest.mark.parametrize("way", ["collect", "scatter"])
async def test_a_running_job_is_cancelled(
    *, start: Any, flights: Any, database: Any, stage: Any, jvm_log: Any, monkeypatch: Any, way: str
) -> None:
    """A stop without patience does not wait for Spark's own work, and no traceback overflows a stack."""

    class NotedBatch(RddBatch):
        def collect(self, limit: int) -> Rows | None:
            if way == "scatter":
                return None
            stage.reached.set()
            return super().collect(limit)

        def scatter(self, take: Take) -> list[Part]:
            stage.reached.set()
            return super().scatter(take)

    monkeypatch.setattr(query_output, "RddBatch", NotedBatch)
    flights.add()
    query = await start(source=flights.source, sql=SLOW, sink=database.sink())
    await stage.until_reached()
    async with asyncio.timeout(60):  # the job itself would take 100 s
        await query.stop(0)
    assert not query._gate.is_occupied
    assert not query._handle._thread.isAlive()
    assert await query.ended() is None
    assert database.ids() == []
    assert "StackOverflowError" not in jvm_log.all()


@pytest.mark.usefixtures("_java_in_sql")
async def test_spark_s_own_sinks_are_let_finish_too(start: Any, flights: Any, tmp_path: Any) -> None:
    """No gate stands before them: Spark's own state tells when the batch in flight is done."""
    flights.add(files=2)
    sink = {"format": "json", "options": {"path": str(tmp_path / "out")}}
    sql = "SELECT id, reflect('java.lang.Thread', 'sleep', 10L) AS never FROM source"
    query = await start(source=flights.source, sql=sql, sink=sink)
    await query.stop(30)
    done = query._handle.query._jsq.lastProgress()
    files = list((tmp_path / "out").glob("*.json"))
    assert len(files) == (0 if done is None else done.batchId() + 1)


async def test_stopping_twice_and_stopping_what_is_over(start: Any, flights: Any, database: Any) -> None:
    """Both do nothing and return once the query is gone; all who wait hear of the end."""
    flights.add()
    query = await start(source=flights.source, sink=database.sink())
    waiting = [asyncio.create_task(query.ended()) for _ in range(2)]
    await asyncio.gather(query.stop(30), query.stop(30))
    await query.stop(30)
    assert await asyncio.gather(*waiting) == [None, None]


async def test_six_at_once(start: Any, flights: Any, database: Any, jvm_log: Any, catch_up: Any) -> None:
    """Queries start and stop side by side, share one database file, and nobody's rows get lost."""
    flights.add(files=3)
    queries = await asyncio.gather(
        *(start(f"t{n}", source=flights.source, sink=database.sink(f"out{n}")) for n in range(6))
    )
    await asyncio.gather(*map(catch_up, queries))
    await asyncio.gather(*(query.stop(30) for query in queries))
    for n in range(6):
        assert database.query(f"SELECT COUNT(*), COUNT(DISTINCT id) FROM out{n}") == [(30, 30)]
    assert "ERROR" not in jvm_log.all()


async def test_a_query_leaves_nothing_with_py4j(
    *, start: Any, flights: Any, database: Any, catch_up: Any, spark: Any
) -> None:
    """It would keep the connection that batches came over, be they refused, and what they were given to."""

    def kept() -> dict[str, int]:
        client = spark.sparkContext._gateway.java_gateway_server.getCallbackClient()
        field = client.getClass().getSuperclass().getDeclaredField("connections")
        field.setAccessible(True)
        return {
            "connections": field.get(client).size(),
            "threads": sum("(run)" in each.name for each in threading.enumerate()),
            "functions": len(spark.sparkContext._gateway.gateway_property.pool),
        }

    async def once() -> None:
        flights.add()
        query = await start(source=flights.source, sink=database.sink())
        await catch_up(query)
        await query.stop(30)

    async def refused() -> None:
        query = await start(source=flights.source, sink=database.sink())
        query._gate.close()
        flights.add()
        await query.ended()

    others = kept()["functions"]  # those that other tests have given to Spark themselves
    await once()
    before = kept()
    for _ in range(3):
        await once()
        await refused()
    await eventually(lambda: all(count <= before[what] for what, count in kept().items()))
    await eventually(lambda: kept()["functions"] <= others)


async def test_no_lease_no_batch(start: Any, flights: Any, database: Any, lease: Any, catch_up: Any) -> None:
    """A worker that may not write any more has its next batch refused at the entry."""
    flights.add()
    query = await start(source=flights.source, sink=database.sink())
    await catch_up(query)
    lease.holds = False
    flights.add()
    assert await query.ended() == QueryError("the worker has lost its lease, so it may not write")
    assert database.ids() == flights.ids[:10]


async def test_without_the_lease_no_query_begins(
    start: Any, lease: Any, flights: Any, tmp_path: Path
) -> None:
    """Spark's own sinks ask nobody: between the start of their query and its first batch stands nothing."""
    flights.add()
    lease.holds = False
    with pytest.raises(QueryError, match="has lost its lease, so it may not start a query"):
        await start(
            source=flights.source, sink={"format": "json", "options": {"path": str(tmp_path / "out")}}
        )
    assert not (tmp_path / "out").exists()


async def test_a_lost_lease_ends_the_queries_of_spark_s_own_sinks(
    engine: SparkEngine, flights: Any, tmp_path: Path
) -> None:
    """No gate refuses their batches: the worker stops the query itself, and then nothing more is written."""
    flights.add()
    out = tmp_path / "out"
    document = {"source": flights.source, "sink": {"format": "json", "options": {"path": str(out)}}}
    async with BackgroundTasks() as background:
        bench = Bench(background, engine=engine)
        bench.grants(lambda _: ClaimResponse(granted=(granted("t1", **document),)))
        bench.assign("t1")
        await eventually(lambda: bench.manager.states("t1")[-1:] == ["RUNNING"])
        [query] = [each for each in engine._monitor.watched() if isinstance(each, SparkQuery)]
        bench.runner.lose("the lease has run out")
        await bench.runner.come_to_rest(60)
        written = len(list(out.glob("*.json")))
        flights.add()
    assert await asyncio.to_thread(query._handle.has_terminated)
    assert len(list(out.glob("*.json"))) == written
