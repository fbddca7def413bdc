"""The fenced Iceberg sink behind a Spark Connect server, which was started with Iceberg and the catalog."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable  # noqa: TC003 - the plugin asks for fixtures' types
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests import connect_server
from tests.integration.spark.conftest import CONNECTORS
from worker.sinks.factory import open_sink
from worker.sinks.fence import Owner
from worker.sinks.lake_jars import with_lakes
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights, Lease, Start
    from worker.query_engine import QuerySpec
    from worker.spark.query import SparkQuery

MODE = "SPARK_CONNECT_MODE_ENABLED"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def opened(
    lease: Lease, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SparkEngine]:
    """A worker's engine on such a server; that of the JVM comes first, while PySpark still lets it."""
    folder = tmp_path_factory.mktemp("iceberg-server")
    names = ("", ".type", ".uri", ".warehouse")
    catalog = {
        f"spark.sql.catalog.lake{name}": spark.conf.get(f"spark.sql.catalog.lake{name}") for name in names
    }
    jars = [str(jar) for part in ("iceberg", "jdbc") for jar in sorted((CONNECTORS / part).glob("*.jar"))]
    conf = {
        **{key: value for key, value in catalog.items() if value is not None},
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.jars": ",".join(jars),
    }
    with connect_server.running(folder, folder, with_lakes(conf)) as server:
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
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
) -> None:
    """The claim of the next owner comes from another Spark; each row is there once."""
    table = f"lake.shop.t{uuid.uuid4().hex}"
    sink = {"format": "iceberg", "table": table, "options": options}
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
    await asyncio.to_thread(spark.sql, f"REFRESH TABLE {table}")
    rows = await asyncio.to_thread(spark.table(table).collect)
    assert sorted(row.id for row in rows) == flights.ids
