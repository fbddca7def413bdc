"""What queries that are over leave of their Iceberg catalogs in a worker's JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.spark.connectors.lake_sinks import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights


def connections(spark: SparkSession) -> int:
    """How often the JVM has the file of the catalog open."""
    jvm: Any = spark._jvm
    files = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/fd").iterdir()
    return sum(str(each.readlink()).endswith("/lake.db") for each in files if each.is_symlink())


async def test_a_query_s_connections_to_its_catalog_end_with_it(
    start: Any, flights: Flights, catch_up: Any, spark: SparkSession
) -> None:
    """Each start has a session, and so have its batches, and each session has a catalog of its own."""
    table = Table(spark)
    sink = {"format": "iceberg", "table": table.name}
    open_then = []
    for token in (1, 2, 3):
        flights.add(files=1)
        query = await start(token=token, source=flights.source, sink=sink)
        await catch_up(query)
        assert await query.stop(10) is None
        open_then.append(connections(spark))
    assert open_then[1:] == open_then[:1] * 2
    assert sorted(row.id for row in table.run("SELECT * FROM {table}")) == flights.ids
