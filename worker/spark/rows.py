"""The one place where a batch's rows leave Spark.

Each partition goes to a function where it is computed, in a process of Python's own beside the executor,
all of them in one job. Measured with 100 and 10,000 rows of ten columns, that takes as long as
`toLocalIterator`, which runs a job a partition, and lets the driver keep only what the function gives back.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import Observation
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame

    from worker.sinks.base import Mark
    from worker.sinks.parts import Part, Take

_COUNTED = {"timestamp": sql.unix_micros, "date": sql.unix_date}
"""What makes numbers of the types that sinks want as numbers (`worker.sinks.types`)."""


class SparkBatch:
    """A micro-batch of a running query, as `worker.sinks.base.Batch` has it."""

    def __init__(self, frame: DataFrame, mark: Mark, check: Callable[[], None]) -> None:
        """`check` raises when the batch is to be cut short."""
        self.mark = mark
        self._frame = frame
        self._check = check

    @property
    def partitions(self) -> int:
        """In how many parts the batch is computed."""
        return int(self._rows.getNumPartitions())

    def scatter(self, take: Take) -> list[Part]:
        """Hand every partition to `take` on its executor; at the driver if only that can reach the sink."""
        master = str(self._frame.sparkSession.sparkContext.master)
        if take.stage.here_only and not master.startswith("local"):
            local: Iterator[Any] = iter(counted(self._frame).toLocalIterator(prefetchPartitions=True))
            parts = list(_take(take, 0, local))
        else:
            parts = self._rows.mapPartitionsWithIndex(partial(_take, take)).collect()
        self._check()
        return parts

    def save(self, file_format: str, folder: str) -> int:
        """Write the rows as files, by Spark's own writer."""
        count = Observation()
        observed = self._frame.observe(count, sql.count(sql.lit(1)).alias("rows"))
        observed.write.format(file_format).save(folder)
        self._check()
        return int(count.get["rows"])

    def discard(self) -> None:
        """Compute all rows and keep none."""
        self._frame.write.format("noop").mode("overwrite").save()
        self._check()

    @cached_property
    def _rows(self) -> Any:
        return counted(self._frame).rdd


def counted(frame: DataFrame) -> DataFrame:
    """The frame with dates and instants as numbers."""
    if not any(kind in _COUNTED for _, kind in frame.dtypes):
        return frame
    return frame.select([_column(name, kind) for name, kind in frame.dtypes])


def _column(name: str, kind: str) -> Column:
    column = sql.col(f"`{name.replace('`', '``')}`")
    return _COUNTED[kind](column).alias(name) if kind in _COUNTED else column


def _take(take: Take, partition: int, rows: Iterator[Any]) -> Iterator[Part]:
    """Runs on the executor. The number of the attempt is one that no other worker will ever draw."""
    yield take(partition, uuid4().int >> 65, map(tuple, rows))
