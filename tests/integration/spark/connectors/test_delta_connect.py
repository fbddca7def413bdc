"""The fenced Delta sink behind a Spark Connect server, which was started with Delta and our jar."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable  # noqa: TC003 - the plugin asks for fixtures' types
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests import connect_server
from tests.delta_sessions import FEW_ROWS
from tests.integration.spark.conftest import CONNECTORS
from tests.integration.spark.connectors.test_lake_refusals import LEFT_OUT, ROWS, TOLD, Table, lines
from worker.sinks.factory import open_sink
from worker.sinks.fence import Owner
from worker.sinks.lake_jars import with_lakes
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights, Lease, Start
    from worker.query_engine import QuerySpec
    from worker.spark.query import SparkQuery

MODE = "SPARK_CONNECT_MODE_ENABLED"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def opened(
    lease: Lease, engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SparkEngine]:
    """A worker's engine on such a server; that of the JVM comes first, while PySpark still lets it."""
    del engine
    folder = tmp_path_factory.mktemp("delta-server")
    jars = ",".join(map(str, sorted((CONNECTORS / "delta").glob("*.jar"))))
    conf = with_lakes({"spark.jars": jars, **FEW_ROWS})
    with connect_server.running(folder, folder, conf) as server:
        settings = SparkSettings(
            app_name="tests", checkpoint_root=str(tmp_path_factory.mktemp("root")), remote=server.url
        )
        remote = SparkEngine(settings, lease)
        await remote.open()
        del os.environ[MODE]  # tests of the JVM may follow
        yield remote
        os.environ[MODE] = "1"
        await remote.close()


@pytest_asyncio.fixture(loop_scope="session")
async def start(
    opened: SparkEngine, lease: Lease, spec: Callable[..., QuerySpec], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Start]:
    """Starts a query on the server; the test's end stops it."""
    monkeypatch.setenv(MODE, "1")
    started = []

    async def run(task: str = "t", token: int = 1, **definition: Any) -> SparkQuery:
        query = await opened.start(spec(task, token, **definition))
        started.append(query)
        return query

    yield run
    lease.holds = True
    await asyncio.gather(*(query.stop(0) for query in started))


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"mode": "upsert", "key": ["id"]}, marks=pytest.mark.by_hand)]
)
async def test_a_zombie_behind_a_server_is_refused(
    *,
    start: Start,
    flights: Flights,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
) -> None:
    """The claim of the next owner comes from another Spark; each row is there once."""
    place = str(tmp_path / "table")
    sink = {"format": "delta", "options": {"path": place, **options}}
    flights.add(files=2)
    zombie = await start(token=1, source=flights.source, sink=sink)
    await asyncio.to_thread(zombie._handle.query.processAllAvailable)
    monkeypatch.delenv(MODE)
    definition, owner = zombie.spec.definition.sink, Owner(zombie.spec.group, zombie.spec.task, 2)
    assert definition is not None
    newer = open_sink(definition, owner, lambda: spark)
    assert newer is not None
    last = (await asyncio.to_thread(newer.claim)).last
    assert last is not None
    assert last.batch_id == 1
    monkeypatch.setenv(MODE, "1")
    flights.add()
    ended = await zombie.ended()
    assert ended is not None
    assert ended.fenced
    successor = await start(token=3, source=flights.source, sink=sink)
    await asyncio.to_thread(successor._handle.query.processAllAvailable)
    monkeypatch.delenv(MODE)
    rows = await asyncio.to_thread(spark.read.format("delta").load(place).collect)
    assert sorted(row.id for row in rows) == flights.ids


async def test_rows_are_put_aside_behind_a_server(
    *, start: Start, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same definition as in a JVM of the worker's own: what cannot be read, violates, or is refused."""
    monkeypatch.delenv(MODE)
    table = await asyncio.to_thread(Table, spark, tmp_path, "delta")
    await asyncio.to_thread(table.run, "ALTER TABLE {} ADD CONSTRAINT positive CHECK (delay >= 0)")
    monkeypatch.setenv(MODE, "1")
    table.add(*lines(*ROWS), "no json")
    query = await start(**table.task())
    assert await query.ended() is None
    progress = query.progress()
    assert progress is not None
    assert progress.totals.left_out == LEFT_OUT
    monkeypatch.delenv(MODE)
    assert await asyncio.to_thread(table.ids) == [1, 7]
    assert await asyncio.to_thread(table.told) == TOLD
