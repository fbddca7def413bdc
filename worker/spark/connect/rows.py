"""A batch's partitions as Spark Connect hands them out, which knows no RDDs: in Arrow's format."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from worker.spark.batches.rows import SparkBatch, attempt, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.sinks.parts import Part, Take

_PART = "part"


class ArrowBatch(SparkBatch):
    """A micro-batch in the process on the server."""

    @property
    def partitions(self) -> int:
        """A guess, exact for a query with state: to ask would mean to compute the batch twice."""
        return int(self._conf("spark.sql.shuffle.partitions"))

    def scatter(self, take: Take) -> list[Part]:
        """On the executors; here if only that can reach the sink."""
        rows = counted(self._frame)
        if take.stage.here_only and not self._conf("spark.master").startswith("local"):
            local = rows.toLocalIterator(prefetchPartitions=True)
            parts = [attempt(take, 0, map(tuple, local))]
        else:
            taken = rows.mapInArrow(partial(_take, take), f"{_PART} binary").collect()
            parts = [pickle.loads(row[_PART]) for row in taken]  # noqa: S301 - made by our own function
        self._check()
        return parts

    def _conf(self, key: str) -> str:
        return str(self._frame.sparkSession.conf.get(key))


def _take(take: Take, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on the executor, once a partition."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    part = attempt(take, partition, _rows(batches))
    yield pa.RecordBatch.from_pydict({_PART: [pickle.dumps(part)]})


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
