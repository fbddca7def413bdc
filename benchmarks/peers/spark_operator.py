"""A plain driver whose operator starts and stops queries with care, without sparkherd.

    python -m benchmarks.peers.spark_operator DATABASE CHECKPOINTS

Takes orders line by line, as JSON, and says `{}` when one is carried out, and when Spark is up: `start` has
the attempt of each task, a number that grows, and `stop` the tasks that are to end after the batch in flight.
A batch's rows go into PostgreSQL in one transaction with the attempt and the number of the batch.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import psycopg
from pyspark.sql import SparkSession

from benchmarks.peers.spark_plain import SETTINGS, THREADS
from benchmarks.tools.moved_queries import (
    CONF,
    COPIED,
    COUNTED,
    EVERY,
    SOURCE_FORMAT,
    SOURCE_OPTIONS,
    STATEFUL,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

PROGRESS: Final = "plain_progress"
LOOK_S: Final = 0.02


def create_tables(database: str, tasks: tuple[str, ...]) -> None:
    """What the queries write to."""
    with psycopg.connect(database) as connection:
        connection.execute(f"CREATE TABLE {PROGRESS} (task TEXT PRIMARY KEY, token BIGINT, batch_id BIGINT)")
        for task in tasks:
            connection.execute(f"INSERT INTO {PROGRESS} VALUES ('{task}', 0, NULL)")
            columns = "digit BIGINT PRIMARY KEY, n BIGINT" if task in STATEFUL else "value BIGINT"
            connection.execute(f"CREATE TABLE plain_{task} ({columns})")


class Driver:
    """One Spark and the queries that it runs."""

    def __init__(self, database: str, checkpoints: str) -> None:
        builder = SparkSession.builder.master("local[2]")
        for key, value in {**CONF, **SETTINGS}.items():
            builder = builder.config(key, value)
        self._spark = builder.getOrCreate()
        self._database = database
        self._checkpoints = checkpoints
        self._queries: dict[str, StreamingQuery] = {}

    def start(self, task: str, attempt: int) -> None:
        """From where it was stopped."""
        session = self._spark.newSession()
        session.readStream.format(SOURCE_FORMAT).options(**SOURCE_OPTIONS).load().createTempView("source")
        counts = task in STATEFUL
        writer = session.sql(COUNTED if counts else COPIED).writeStream.trigger(processingTime=EVERY)
        writer = writer.outputMode("update" if counts else "append")
        writer = writer.option("checkpointLocation", f"{self._checkpoints}/{task}")
        self._queries[task] = writer.foreachBatch(self._writing(task, attempt)).start()

    def stop(self, task: str) -> None:
        """Between two batches."""
        query = self._queries.pop(task)
        while query.status["isTriggerActive"]:
            time.sleep(LOOK_S)
        query.stop()

    def _writing(self, task: str, attempt: int) -> Callable[[DataFrame, int], None]:
        connection = psycopg.connect(self._database)
        insert = f"INSERT INTO plain_{task} VALUES (%s)"
        if task in STATEFUL:
            insert = (
                f"INSERT INTO plain_{task} VALUES (%s, %s) ON CONFLICT (digit) DO UPDATE SET n = EXCLUDED.n"
            )
        done = f"UPDATE {PROGRESS} SET token = {attempt}, batch_id = %s WHERE task = '{task}'"

        def write(batch: DataFrame, batch_id: int) -> None:
            rows = [tuple(row) for row in batch.collect()]
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(insert, rows)
                cursor.execute(done, (batch_id,))

        return write


def main(database: str, checkpoints: str) -> None:
    """Until there are no more orders."""
    driver = Driver(database, checkpoints)
    print("{}", flush=True)
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            order = json.loads(line)
            list(pool.map(driver.stop, order.get("stop", ())))
            list(pool.map(lambda each: driver.start(*each), order.get("start", {}).items()))
            print("{}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
