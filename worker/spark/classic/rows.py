"""A batch's partitions as RDDs hand them out.

Each partition goes to a function where it is computed, in a process of Python's own beside the executor,
all of them in one job. Measured with 100 and 10,000 rows of ten columns, that takes as long as
`toLocalIterator`, which runs a job a partition, and lets the driver keep only what the function gives back.

A batch of 300 rows takes 94 ms that way, and half of it by `collect`, whose rows do not go through that
process.
"""

from __future__ import annotations

import json
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from worker.spark.batches.rows import SparkBatch, attempt, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, Observation

    from worker.sinks.fence import Mark
    from worker.sinks.parts import Part, Rows, Take

FEW_PARTITIONS = 5
"""Each of them computes as many rows as the batch may have in all, before it is known to have more."""
LIMIT_CONF = {"spark.sql.limit.initialNumPartitions": str(FEW_PARTITIONS)}
"""What `RddBatch.collect` needs of a query's session.

By itself, Spark looks for a limited number of rows in one partition first, and in others only when that had
too few: that is a second job for nearly each batch, and its partitions wait for the first one's.
"""


class RddBatch(SparkBatch):
    """A micro-batch in the worker's own JVM."""

    def __init__(
        self,
        frame: DataFrame,
        mark: Mark,
        check: Callable[[], None],
        query_frame: DataFrame | None = None,
    ) -> None:
        """`query_frame` is what Spark has handed to the query, if `frame` was made of it."""
        super().__init__(frame, mark, check)
        self._query_frame = frame if query_frame is None else query_frame
        self._acted = frame

    @cached_property
    def partitions(self) -> int:
        """Those of the RDD that Spark has made the frame from; the frame's own would have to be planned."""
        frame: Any = self._query_frame._jdf  # noqa: SLF001 - where PySpark keeps it
        return int(frame.queryExecution().logical().rdd().getNumPartitions())

    def collect(self, limit: int) -> Rows | None:
        """In one job, all partitions at once (`LIMIT_CONF`)."""
        if self.partitions > FEW_PARTITIONS:
            return None
        self._acted = counted(self._frame).limit(limit + 1)
        rows: list[Any] = self._acted.collect()
        self._check()
        return rows if len(rows) <= limit else None

    def observed(self, counting: Observation) -> Mapping[str, Any] | None:
        """By the plan that was executed: no listener of Spark's hears of what is done with an RDD."""
        plan: Any = self._acted._jdf.queryExecution()  # noqa: SLF001 - where PySpark keeps it
        java: Any = counting._jo  # noqa: SLF001 - likewise
        found = plan.observedMetrics().get(java.name())
        if found.isEmpty() or found.get().schema() is None:
            return None
        figures: dict[str, Any] = json.loads(found.get().json())
        return figures

    def scatter(self, take: Take) -> list[Part]:
        """On the executors; at the driver if only that can reach the sink."""
        self._acted = counted(self._frame)
        master = str(self._frame.sparkSession.sparkContext.master)
        if take.stage.here_only and not master.startswith("local"):
            local: Iterator[Any] = iter(self._acted.toLocalIterator(prefetchPartitions=True))
            parts = list(_take(take, 0, local))
        else:
            parts = self._acted.rdd.mapPartitionsWithIndex(partial(_take, take)).collect()
        self._check()
        return parts


def _take(take: Take, partition: int, rows: Iterator[Any]) -> Iterator[Part]:
    yield attempt(take, partition, map(tuple, rows))
