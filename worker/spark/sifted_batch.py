"""A micro-batch on its way into a sink without the rows that violate an expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation

from worker.sinks.violations import Counts, SiftingTake, added, sifted
from worker.spark.expectations import counts, without_violations
from worker.spark.rows import SparkBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from worker.sinks.base import Answer
    from worker.sinks.parts import Part, Rows, Take


class SiftedBatch(SparkBatch):
    """What a backend's batch is to the sink, whose rows have their masks.

    `violations` are those of the rows that were left out; known when the batch has been done.
    """

    def __init__(self, batch: SparkBatch, expectations: int) -> None:
        """`expectations` is the number of those that have a bit in the mask."""
        self.mark = batch.mark
        self.violations: Counts = ()
        self._batch = batch
        self._expectations = expectations

    @property
    def partitions(self) -> int:
        """Those of the whole batch."""
        return self._batch.partitions

    def collect(self, limit: int) -> Rows | None:
        """The limit is one of rows that are computed."""
        rows = self._batch.collect(limit)
        if rows is None:
            return None
        good, self.violations = sifted(rows, self._expectations)
        return good

    def scatter(self, take: Take) -> list[Part]:
        """Sifted where a partition is computed."""
        parts = self._batch.scatter(SiftingTake(take.stage, take.inline_rows, self._expectations))
        self.violations = added((part.violations for part in parts), self._expectations)
        return parts

    def hand_over(self, use: Callable[[DataFrame], Answer]) -> Answer:
        """Sifted by Spark, which counts in passing."""
        seen = Observation()

        def use_sifted(frame: DataFrame) -> Answer:
            return use(without_violations(frame.observe(seen, *counts(self._expectations))))

        answer = self._batch.hand_over(use_sifted)
        self.violations = tuple(int(seen.get[str(at)]) for at in range(self._expectations))
        return answer

    def discard(self) -> None:
        """The whole batch."""
        self._batch.discard()


def sifted_batch(batch: SparkBatch, expectations: int) -> SparkBatch:
    """The batch as the sink is to have it; without expectations, as it is."""
    return SiftedBatch(batch, expectations) if expectations else batch
