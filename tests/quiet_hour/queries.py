"""The task of the quiet hour whose query fails now and then, and is started again by its worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from sparkherd import TaskContext

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP"


def stumbling(context: TaskContext) -> Any:
    """Rows of files as they are; a batch fails if the file `stone` is there, which is removed."""
    stone = context.options["stone"]

    def stumble(number: int) -> int:
        if Path(stone).exists():
            Path(stone).unlink(missing_ok=True)
            message = "stumbled once"
            raise ConnectionError(message)
        return number

    rows = context.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 10)
    same = f.udf(stumble, "bigint")
    return context.sink(rows.json(context.options["path"]).select(same("id").alias("id"), "name"))
