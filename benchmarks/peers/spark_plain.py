"""The same queries as anybody would write them, many in one Spark, without sparkherd.

    python -m benchmarks.peers.spark_plain

Takes a line with a list of jobs (JSON) at a time, runs them all at once, and says when each begins, as
`tools/spark_worker.py` does, and `spent` when it is over.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from benchmarks.tools.flight_rows import COLUMNS, SCHEMA, TYPES
from benchmarks.tools.spark_worker import CONF, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

THREADS = 8
"""As many as a worker starts queries with."""
SETTINGS = {"spark.ui.enabled": "false", "spark.scheduler.mode": "FAIR", "spark.driver.host": "127.0.0.1"}


def start(spark: SparkSession, job: dict[str, str]) -> StreamingQuery:
    """One query into a database of its own; `job` has its task, source, database and checkpoint."""
    say("granted", job["task"])
    frame = spark.newSession().readStream.format("csv").schema(SCHEMA)
    frame = frame.options(path=job["source"], nullValue="NA", maxFilesPerTrigger=1)
    writer = frame.load().writeStream.foreachBatch(inserting(job["database"])).trigger(availableNow=True)
    return writer.option("checkpointLocation", job["checkpoint"]).start()


def inserting(database: str) -> Callable[[DataFrame, int], None]:
    """Each batch collected and inserted, over one connection."""
    connection = sqlite3.connect(database, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"CREATE TABLE bench ({TYPES})")
    statement = f"INSERT INTO bench VALUES ({', '.join('?' * len(COLUMNS))})"

    def insert(batch: DataFrame, _: int) -> None:
        with connection:
            connection.executemany(statement, [tuple(row) for row in batch.collect()])

    return insert


def finish(task: str, query: StreamingQuery) -> None:
    """Wait for it."""
    query.awaitTermination()
    first: Any = query.recentProgress[0]
    say("spent", task, json.dumps(first["durationMs"], separators=(",", ":")))


def main() -> None:
    """Until there are no more lines."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**CONF, **SETTINGS}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    say("joining", "-")
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            jobs = json.loads(line)
            queries = pool.map(lambda job: (job["task"], start(spark, job)), jobs)
            for task, query in list(queries):
                finish(task, query)
    spark.stop()


if __name__ == "__main__":
    main()
