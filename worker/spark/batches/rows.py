"""The one place where a batch's rows leave Spark; how the backends hand out partitions is their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import Observation
from pyspark.sql import functions as sql

from worker.spark.batches.observing import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from worker.sinks.base import Answer
    from worker.sinks.fence import Mark
    from worker.sinks.parts import Part, Rows, Take

_COUNTED = {"timestamp": sql.unix_micros, "date": sql.unix_date}
"""What makes numbers of the types that sinks want as numbers (`worker.sinks.types`)."""


class SparkBatch(ABC):
    """A micro-batch of a running query, as `worker.sinks.base.Batch` has it."""

    def __init__(self, frame: DataFrame, mark: Mark, check: Callable[[], None]) -> None:
        """`check` raises when the batch is to be cut short."""
        self.mark = mark
        self._frame = frame
        self._check = check

    @property
    @abstractmethod
    def partitions(self) -> int:
        """In how many parts the batch is computed."""

    def check(self) -> None:
        """By the query's gate."""
        self._check()

    def collect(self, limit: int) -> Rows | None:
        """A backend that has a way which is cheaper than `scatter` has it here."""
        del limit
        return None

    @abstractmethod
    def scatter(self, take: Take) -> list[Part]:
        """Hand every partition to `take` where it is computed."""

    def observed(self, counting: Observation) -> Mapping[str, Any] | None:
        """What the last `collect` or `scatter` has counted in passing; None if nothing was.

        Args:
            counting: of a frame that this one is made of.
        """
        return observed(counting)

    def write(self, write: Callable[[DataFrame], object]) -> int:
        """Counted while they pass."""
        count = Observation()
        self.hand_over(lambda frame: write(frame.observe(count, sql.count(sql.lit(1)).alias("rows"))))
        return int(count.get["rows"])

    def hand_over(self, use: Callable[[DataFrame], Answer]) -> Answer:
        """The frame as the query has it."""
        answer = use(self._frame)
        self._check()
        return answer

    def save(self, file_format: str, folder: str) -> int:
        """Write the rows as files, by Spark's own writer, in place of what it has left there before."""
        return self.write(lambda frame: frame.write.mode("overwrite").format(file_format).save(folder))

    def discard(self) -> None:
        """Compute all rows and keep none."""
        compute(self._frame)
        self._check()


@dataclass
class CurrentBatch:
    """The batch that a function of the user's is doing; `is_repeated` says that it was written before."""

    frame: DataFrame
    batch_id: int
    is_repeated: bool = False

    def do(self, function: Callable[[DataFrame, int], Any]) -> None:
        """Do it. The state of a query is committed by computing, which the function may have left out."""
        function(self.frame, self.batch_id)
        if self.is_repeated:
            compute(self.frame)


def compute(frame: DataFrame) -> None:
    """Compute all rows and keep none: that is how the state of a query gets to the next batch."""
    frame.write.format("noop").mode("overwrite").save()


def counted(frame: DataFrame) -> DataFrame:
    """The frame with dates and instants as numbers."""
    if not any(kind in _COUNTED for _, kind in frame.dtypes):
        return frame
    return frame.select([_column(name, kind) for name, kind in frame.dtypes])


def _column(name: str, kind: str) -> Column:
    column = sql.col(f"`{name.replace('`', '``')}`")
    return _COUNTED[kind](column).alias(name) if kind in _COUNTED else column


def attempt(take: Take, partition: int, rows: Iterator[tuple[Any, ...]]) -> Part:
    """Runs on the executor. The number of the attempt is one that no other worker will ever draw."""
    return take(partition, uuid4().int >> 65, rows)
