"""Entry points of the tests; the worker and the server's Python both import this module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def guarded(context: Any) -> Any:
    """Rows into a table of its own, under the fence; one batch of one owner waits inside for the test."""
    url, hold = context.options["url"], context.options.get("hold")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS flights (id INTEGER)")
    context.fence.claim(engine)
    engine.dispose()

    def put(frame: DataFrame, batch_id: int) -> None:
        rows = [(row.id,) for row in frame.collect()]
        if hold == [context.token, batch_id]:
            pause(Path(context.options["stage"]))
        if context.options.get("check"):
            context.fence.check()
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            if context.fence.guard(connection):
                connection.exec_driver_sql("INSERT INTO flights VALUES (?)", rows)
        engine.dispose()

    source = context.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
    return context.foreach_batch(source.json(context.options["path"]), put)


def pause(stage: Path) -> None:
    """Say that the batch is inside, and wait for the word to go on; both are named pipes."""
    (stage / "reached").write_text("here")
    (stage / "go_on").read_text()
