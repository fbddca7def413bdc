"""The same queries as anybody would write them, many in one Spark, without sparkherd.

    python -m benchmarks.peers.spark_plain [JAR ...]

Takes a line with a list of jobs (JSON) at a time, runs them all at once, and says when each begins, as
`tools/spark_worker.py` does, and `spent` when it is over. A batch's rows go into the database in one
transaction. Nothing says there which batch it was: one that is done again is there twice.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.tools.flight_rows import COLUMNS, TYPES
from benchmarks.tools.spark_worker import CONF, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

THREADS = 8
"""As many as a worker starts queries with."""
SETTINGS = {"spark.ui.enabled": "false", "spark.scheduler.mode": "FAIR", "spark.driver.host": "127.0.0.1"}


def start(spark: SparkSession, job: dict[str, Any]) -> StreamingQuery:
    """One query into a database of its own; `job` has its task, source, database and checkpoint."""
    say("granted", job["task"])
    frame = read(spark.newSession(), **job["source"]).select(*COLUMNS)
    writer = frame.writeStream.foreachBatch(inserting(job["database"])).trigger(availableNow=True)
    return writer.option("checkpointLocation", job["checkpoint"]).start()


def read(
    session: SparkSession,
    format: str,  # noqa: A002 - as a definition calls it
    options: dict[str, Any],
    schema: str | None = None,
    value: dict[str, str] | None = None,
) -> DataFrame:
    """What a definition's source says, the JSON of Kafka's values by Spark's own function."""
    reader = session.readStream.format(format).options(**options)
    frame = (reader if schema is None else reader.schema(schema)).load()
    if value is None:
        return frame
    row = f.from_json(f.col("value").cast("string"), value["schema"])
    return frame.select(row.alias("row")).select("row.*")


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
    for key, value in {**CONF, **SETTINGS, "spark.jars": ",".join(sys.argv[1:])}.items():
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
