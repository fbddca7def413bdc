"""Entry points of the soak's tasks: what SQL alone does not say, and Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from sparkherd import TaskContext

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP"


def _rows(context: TaskContext) -> Any:
    reader = context.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 10)
    return reader.json(context.options["path"])


def distinct(context: TaskContext) -> Any:
    """Each row twice, of which one is to be left."""
    rows = _rows(context).withWatermark("at", "5 minutes")
    return context.sink(rows.union(rows).dropDuplicatesWithinWatermark(["id"]).select("id", "name"))


def in_python(context: TaskContext) -> Any:
    """Through a function of Python's."""
    same = f.udf(lambda number: number, "bigint")
    return context.sink(_rows(context).select(same("id").alias("id"), "name"))
