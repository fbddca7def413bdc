"""Entry points of the tests; the worker and the server's Python both import this module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def guarded(context: Any) -> Any:
    """Rows into a table of its own, under the fence; a batch of its first owner waits inside for the test."""
    url, hold = context.options["url"], context.options.get("hold")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS flights (id INTEGER)")
    context.fence.claim(engine)
    engine.dispose()

    def put(frame: DataFrame, batch_id: int) -> None:
        rows = [(row.id,) for row in frame.collect()]
        if hold == batch_id:
            pause_once(Path(context.options["stage"]))
        if context.options.get("check"):
            context.fence.check()
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            if context.fence.guard(connection):
                connection.exec_driver_sql("INSERT INTO flights VALUES (?)", rows)
        engine.dispose()

    source = context.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    return context.foreach_batch(source.json(context.options["path"]), put)


def counted(context: Any) -> Any:
    """Rows a carrier, into a table of its own; nothing is computed of a batch that is there already."""
    url, crash = context.options["url"], context.options.get("crash")

    def put(frame: DataFrame, batch_id: int) -> None:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TABLE IF NOT EXISTS counts (carrier TEXT PRIMARY KEY, n INTEGER)"
            )
            if context.fence.guard(connection):
                rows = [tuple(row) for row in frame.collect()]
                connection.exec_driver_sql("INSERT OR REPLACE INTO counts VALUES (?, ?)", rows)
        engine.dispose()
        if crash == batch_id:
            raise OSError("the power is gone")

    source = context.spark.readStream.schema("carrier STRING").option("maxFilesPerTrigger", 1)
    return context.foreach_batch(source.json(context.options["path"]).groupBy("carrier").count(), put)


def lagging(context: Any) -> Any:
    """Its checkpoint lags behind its batches, if the option says so."""
    frame = context.spark.readStream.format("rate").load()
    return frame.writeStream.format("noop").options(**context.options)


def pause_once(stage: Path) -> None:
    """Say that the batch is inside, and wait for the word to go on; both are named pipes."""
    try:
        (stage / "was_here").touch(exist_ok=False)
    except FileExistsError:
        return
    (stage / "reached").write_text("here")
    (stage / "go_on").read_text()
