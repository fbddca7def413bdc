"""A micro-batch on its way into a sink without the rows that are left out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Observation
from pyspark.sql import functions as f

from worker.left_out import NOTHING, LeftOut
from worker.sinks.aside import MOST_BYTES, SHOWN_ROWS
from worker.sinks.errors import SinkError
from worker.sinks.sifting import Sieve, SiftingTake
from worker.spark.batches.local_batch import LocalBatch
from worker.spark.batches.observing import observed
from worker.spark.batches.rows import SparkBatch
from worker.spark.expectations import counts, violating, without_violations
from worker.spark.reading.unreadable import counts as unreadable_counts
from worker.spark.reading.unreadable import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from worker.sinks.aside import Aside
    from worker.sinks.base import Answer, Batch, Condition, Field
    from worker.sinks.fence import Mark
    from worker.sinks.parts import Part, Rows, Take
    from worker.sinks.sifting import Sifting
    from worker.spark.batches.batch_steps import BatchSteps


class Backend(Protocol):
    """Makes a batch of its own of a frame, with the mark of the one that is being done."""

    def __call__(self, frame: DataFrame, /) -> SparkBatch:
        """Of as many partitions as the query's own frame has."""
        ...


class SiftedBatch(SparkBatch):
    """What a backend's batch is to a sink, if rows of it may be left out.

    `aside`, `left_out` and `rows` are as `worker.sinks.base.Lookable` has them. A sink that puts rows aside
    in its own transaction has the batch computed once, and so has one that stages it. For another one they
    are looked for before, and so are they if it turns out that there are some when Spark has saved a batch,
    for then they are not at hand.
    """

    def __init__(self, frame: DataFrame, steps: BatchSteps, backend: Backend) -> None:
        """`frame` is as the query's plan has it; `steps` are what is still to be done."""
        self.aside: Sequence[Aside] = ()
        self.left_out: LeftOut = NOTHING
        self.rows = 0
        self._batch = backend(frame)
        super().__init__(frame, self._batch.mark, self._batch.check)
        self._steps = steps
        self._backend = backend
        self._was_looked_at = False
        self._put: Callable[[Rows], None] | None = None
        self._is_clean = False
        self._made: DataFrame | None = None
        self._in_cache: list[DataFrame] = []

    @property
    def conditions(self) -> Sequence[Condition]:
        """The sink's that its mask was made by."""
        return self._steps.conditions

    @property
    def partitions(self) -> int:
        """Those of the whole batch."""
        return self._batch.partitions

    def put_first(self, put: Callable[[Rows], None], *, is_staged: bool, is_clean: bool) -> None:
        """See `worker.sinks.base.Lookable`."""
        self._put, self._is_clean = put, is_clean
        if not is_staged:
            self._look()

    def pass_over(self) -> None:
        """Nothing is looked for: a sink may compute a batch that it has by a frame that it puts nowhere."""
        self._was_looked_at = True

    def release(self) -> None:
        """The batch is over."""
        while self._in_cache:
            self._in_cache.pop().unpersist()

    def _look(self) -> None:
        """All is counted, and what is put aside fetched, and put there.

        Until `release` the batch is in Spark's cache, and the result if it is sifted: that comes out the same
        each time then, whatever it makes of the time of day.
        """
        self._was_looked_at = True
        self._frame = self._cached(self._frame)
        if self._steps.reading is not None:
            self._look_for_unreadable(self._frame)
        if self._steps.sifting is not None:
            self._made = self._cached(self._result(self._frame))
            self._look_for_violations(self._made, self._steps.sifting)
        self._put_aside([])

    def _put_aside(self, others: Rows) -> None:
        """Now it is known what; once. Of the others, those are given that are at the driver."""
        put, self._put = self._put, None
        if put is not None:
            put(others)

    def _cached(self, frame: DataFrame) -> DataFrame:
        self._in_cache.append(frame.persist())
        return self._in_cache[-1]

    def of_rows(self, rows: Rows, fields: Sequence[Field], mark: Mark) -> Batch:
        """In the batch's own session."""
        return LocalBatch(self._frame.sparkSession, rows, fields, mark)

    def collect(self, limit: int) -> Rows | None:
        """The limit is one of rows that are computed."""
        self._require_order()
        sieve, counting = self._sieve(), Observation()
        batch = self._backend(self._counted(counting))
        rows = batch.collect(limit)
        if rows is None:
            return None
        good = rows if sieve is None else list(sieve.sifted(rows))
        if sieve is not None:
            self._take(sieve.left_out, sieve.kept)
        self._note(len(rows), batch, counting)
        self._put_aside(good)
        return good

    def scatter(self, take: Take) -> list[Part]:
        """Sifted where a partition is computed."""
        self._require_order()
        counting, sifting = Observation(), self._sifting
        wanted = take if sifting is None else SiftingTake(take.stage, take.inline_rows, sifting)
        batch = self._backend(self._counted(counting))
        parts = batch.scatter(wanted)
        for part in parts:
            self._take(part.left_out, part.aside)
        self._note(sum(part.count for part in parts) + self.left_out.total, batch, counting)
        if all(part.fault is None for part in parts):  # else the sink is about to refuse the batch
            self._put_aside([row for part in parts for row in part.rows or ()])
        return [part.bare() for part in parts]

    def save(self, file_format: str, folder: str) -> int:
        """In passing, if that is likely to do; else, and where it did not, looked at before."""
        rows = None if self._put is None or not self._is_clean else self._saved(file_format, folder)
        if rows is None:
            return super().save(file_format, folder)
        self._put_aside([])
        return rows

    def hand_over(self, use: Callable[[DataFrame], Answer]) -> Answer:
        """Sifted by Spark, which counts in passing what was not counted before.

        What `use` does may count at once.
        """
        self._require_order()
        if self._put is not None:
            self._look()
        sifting, counting = self._sifting, Observation()
        if sifting is None:
            return self._backend(self._kept()).hand_over(use)
        result = self._result(self._frame)
        seen = result.observe(counting, *counts(sifting))
        answer = self._backend(without_violations(seen)).hand_over(use)
        self._count(observed(counting) or _totals(result, counts(sifting)), sifting)
        return answer

    def discard(self) -> None:
        """The whole batch."""
        self._batch.discard()

    def _saved(self, file_format: str, folder: str) -> int | None:
        """How many rows Spark has saved; None if that is in vain, for some are to be put aside."""
        sifting, reading, counting = self._steps.sifting, Observation(), Observation()
        result = self._counted(reading)
        if sifting is not None:
            result = without_violations(result.observe(counting, *counts(sifting)))
        rows = self._backend(result).save(file_format, folder)
        if self._steps.reading is not None and _may_have_some(observed(reading)):
            return None
        if sifting is None:
            self.rows = rows
            return rows
        found = observed(counting)
        if found is None or found["aside"]:
            return None
        self._count(found, sifting)
        return rows

    def _require_order(self) -> None:
        """Rows that are put aside elsewhere have to be there before the others are anywhere."""
        if self._steps.is_elsewhere and not self._was_looked_at and self._put is None:
            raise SinkError(f"batch {self.mark.batch_id} was not looked at for rows that are put aside")

    @property
    def _sifting(self) -> Sifting | None:
        """How rows are to be left out on their way; None if there are none, or none any more."""
        return None if self._was_looked_at else self._steps.sifting

    def _sieve(self) -> Sieve | None:
        return None if self._sifting is None else Sieve(self._sifting)

    def _counted(self, counting: Observation) -> DataFrame:
        """The result, with its mask as long as that is needed, and the rows that cannot be read counted."""
        if self._was_looked_at:
            return self._kept()
        if self._steps.reading is None:
            return self._frame
        return self._result(self._frame.observe(counting, *unreadable_counts()))

    def _kept(self) -> DataFrame:
        """What goes to the sink of a batch that was looked at."""
        result = self._result(self._frame) if self._made is None else self._made
        return result if self._steps.sifting is None else without_violations(result)

    def _result(self, frame: DataFrame) -> DataFrame:
        return frame if self._steps.reading is None else self._steps.reading.result(frame)

    def _note(self, rows: int, batch: SparkBatch, counting: Observation) -> None:
        """How many rows of the result were computed, and then those that could not be read."""
        if self._was_looked_at:
            return
        self.rows = rows
        if self._steps.reading is None:
            return
        found = batch.observed(counting)
        if found is not None and found["rows"] and found["bytes"] <= MOST_BYTES:
            self._take_unreadable(self._frame, found)
        else:  # nobody knows, or it was counted twice
            self._take_unreadable(self._frame, _totals(self._frame, unreadable_counts()))

    def _look_for_unreadable(self, frame: DataFrame) -> None:
        found = _totals(frame, unreadable_counts())
        if self._steps.sifting is None:  # else it is counted what has become of them
            self.rows += found["rows"] - found["aside"]
        self._take_unreadable(frame, found)

    def _take_unreadable(self, frame: DataFrame, found: Mapping[str, Any]) -> None:
        """All rows that cannot be read, or as many as a cause shows if they are too large for the driver."""
        if not found["aside"]:
            return
        fit = found["bytes"] <= MOST_BYTES
        rows = unreadable(frame, self._steps.most + 1 if fit else SHOWN_ROWS)
        number = len(rows) if fit else int(found["aside"])
        self._take(LeftOut(quarantined=number, reasons={"unreadable": number}), rows)
        self.rows += number

    def _look_for_violations(self, result: DataFrame, sifting: Sifting) -> None:
        found = _totals(result, counts(sifting))
        self._count(found, sifting)
        if found["aside"]:
            chosen = violating(result, sifting)
            size = _totals(chosen, [f.sum(f.octet_length("row")).alias("bytes")])["bytes"]
            rows = chosen.limit(sifting.most + 1 if size <= MOST_BYTES else SHOWN_ROWS).collect()
            self.aside = [*self.aside, *(sifting.aside(mask, text.encode()) for mask, text in rows)]

    def _count(self, found: Mapping[str, Any], sifting: Sifting) -> None:
        """By what Spark has counted."""
        reasons = {
            name: int(found[str(at)]) for at, (name, _) in enumerate(sifting.counted) if found[str(at)]
        }
        aside = int(found["aside"])
        self.left_out += LeftOut(int(found["left_out"]) - aside, aside, reasons)
        self.rows += int(found["rows"])

    def _take(self, left_out: LeftOut, rows: Sequence[Aside]) -> None:
        self.left_out += left_out
        self.aside = [*self.aside, *rows]


def _may_have_some(found: Mapping[str, Any] | None) -> bool:
    """Whether rows may be there that cannot be read; of a batch that was not read, nobody knows."""
    return found is None or bool(found["aside"]) or not found["rows"]


def _totals(frame: DataFrame, wanted: Sequence[Column]) -> Mapping[str, Any]:
    """By a job of its own."""
    [row] = frame.agg(*wanted).collect()
    return row.asDict()
