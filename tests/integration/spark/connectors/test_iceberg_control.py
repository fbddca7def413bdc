"""The control run: Spark's own Iceberg sink, with a driver held up between its check and its commit."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.held_line import TIMEOUT_S
from tests.integration.spark.conftest import CONNECTORS, SCHEMA
from tests.integration.spark.connectors.held_server import HeldServer

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = """
import json, sys
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]")
for key, value in given["conf"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
frame = spark.readStream.schema(given["schema"]).option("maxFilesPerTrigger", 1).json(given["source"])
writer = frame.writeStream.format("iceberg").option("checkpointLocation", given["checkpoint"])
query = writer.trigger(availableNow=True).toTable(given["table"])
query.awaitTermination()
"""
"""Spark's own sink, with nothing of ours."""


def driver(source: Path, checkpoint: Path, conf: dict[str, str]) -> subprocess.Popen[bytes]:
    """A driver of its own, with a JVM of its own."""
    jars = ",".join(
        str(jar) for name in ("iceberg", "jdbc") for jar in sorted((CONNECTORS / name).glob("*.jar"))
    )
    given = {
        "conf": {
            "spark.jars": jars,
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            **conf,
        },
        "schema": SCHEMA,
        "source": str(source),
        "checkpoint": str(checkpoint),
        "table": "pg.shop.orders",
    }
    return subprocess.Popen([sys.executable, "-c", DRIVER, json.dumps(given)], stderr=subprocess.DEVNULL)


def test_spark_s_own_sink_writes_a_batch_twice(
    flights: Any, postgres: str, tmp_path: Path, spark: Any
) -> None:
    """One driver is held up when it has asked for the last batch, and goes on when another has written it."""
    flights.add(files=1)
    lake = tmp_path / "lake"
    with HeldServer(postgres, hold=b"UPDATE iceberg_tables") as slow, HeldServer(postgres) as direct:
        session = spark.newSession()
        for key, value in direct.catalog("pg", lake).items():
            session.conf.set(key, value)
        session.sql(f"CREATE TABLE pg.shop.orders ({SCHEMA.replace(' LONG', ' BIGINT')}) USING iceberg")
        former = driver(flights.folder, tmp_path / "checkpoint", slow.catalog("pg", lake))
        assert slow.reached.wait(TIMEOUT_S), "the former driver has not come to its commit"
        following = driver(flights.folder, tmp_path / "checkpoint", direct.catalog("pg", lake))
        assert following.wait(TIMEOUT_S) == 0
        session.sql("REFRESH TABLE pg.shop.orders")
        assert session.table("pg.shop.orders").count() == len(flights.ids)
        slow.go_on.set()
        former.wait(TIMEOUT_S)
        session.sql("REFRESH TABLE pg.shop.orders")
        told = "summary['spark.sql.streaming.epochId']"
        epochs = [row[0] for row in session.sql(f"SELECT {told} FROM pg.shop.orders.snapshots").collect()]
        assert epochs == ["0", "0"]
        assert session.table("pg.shop.orders").count() == 2 * len(flights.ids)


pytestmark = pytest.mark.connectors
