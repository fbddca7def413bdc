"""The fenced Iceberg sink: a batch's rows and its mark are one snapshot, which follows the fence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from worker.sinks.base import Finding, Sink, Written
from worker.sinks.errors import SinkError
from worker.sinks.iceberg.marks import key_of, tag_of
from worker.sinks.iceberg.naming import read_name
from worker.sinks.iceberg.place import TablePlace
from worker.sinks.iceberg.publishing import Outcome, Publisher
from worker.sinks.iceberg.table import SparkTable
from worker.sinks.last_rows import in_order, last_of_each_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from definition.sinks.iceberg import IcebergOptions
    from worker.sinks.base import Batch, Condition, Field, SinkTask
    from worker.sinks.fence import FenceRow, Mark
    from worker.sinks.iceberg.place import Fitted


class IcebergSink(Sink):
    """Rows into a table of a catalog's: appended, upserted by key, or in the place of those before."""

    def __init__(self, task: SinkTask, place: TablePlace) -> None:
        self._task = task
        self._options: IcebergOptions = task.options
        self._place = place
        self._fitted: Fitted | None = None
        self._publisher = Publisher(task.owner, self._options.branch)

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """The table is looked at when it is claimed."""
        return cls(task, _place(task))

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """By the columns and partitions that the table has."""
        place = _place(task)
        try:
            place.require_safe(task.spark)
            said = place.inspect(task.spark, fields)
        except SinkError as error:
            return [Finding("sink.table", str(error).removeprefix("sink.table: "))]
        return [] if said is None else [Finding("sink.table", said, is_fine=True)]

    @property
    def place(self) -> str:
        """The table, and its branch."""
        return f"{self._task.definition.table} (branch {self._options.branch})"

    def claim(self) -> FenceRow:
        """Raise the fence by a snapshot of its own, in a table that is made if there is none."""
        self._place.require_safe(self._task.spark)
        self._place.make(self._task.spark)
        return self._table(self._task.spark).run(self._publisher.claim())

    def newest(self) -> FenceRow | None:
        """The mark that is the newest in the table's past; None also where there is no Spark to ask."""
        if self._task.session is None or not self._place.is_there(self._task.spark):
            return None
        return self._table(self._task.spark).run(self._publisher.newest())

    def prepare(self, fields: Sequence[Field]) -> None:
        """See that the table has the query's columns, or give them to it."""
        self._fitted = self._place.fit(self._task.spark, fields)

    def conditions(self) -> Sequence[Condition]:
        """The table's columns that take no NULL, as they were when it was prepared."""
        return () if self._fitted is None else self._fitted.conditions

    def write(self, batch: Batch) -> Written:
        """Write the batch right after the head at which the fence was read, if it is still the head then."""
        if self._fitted is None:
            raise SinkError("the sink was not prepared")
        outcome = batch.hand_over(partial(self._put, self._fitted, batch.mark))
        return Written(outcome.rows, outcome.row.rows, outcome.is_duplicate)

    def close(self) -> None:
        """Nothing is open between two batches."""

    def _put(self, fitted: Fitted, mark: Mark, frame: DataFrame) -> Outcome:
        """Computes the frame once, or as often as others' commits have made an attempt vain."""
        table = self._table(frame.sparkSession)
        was_computed = False

        def computed(write: Callable[[DataFrame, str, str], object], into: str, text: str) -> None:
            nonlocal was_computed
            write(fitted.frame(frame), into, text)
            was_computed = True

        if self._options.mode == "upsert":
            return self._upserted(table, mark, fitted, frame)
        write = table.overwrite if self._options.mode == "overwrite" else table.append
        outcome = table.run(self._publisher.put(mark, None), partial(computed, write))
        if not was_computed:
            _compute(frame)
        return outcome

    def _upserted(self, table: SparkTable, mark: Mark, fitted: Fitted, frame: DataFrame) -> Outcome:
        """The count is part of the mark, so it is taken before; it is what computes the batch, too."""
        counted = frame.persist()
        try:
            added = counted.count()
            kept = in_order(counted).localCheckpoint()
        finally:
            counted.unpersist()
        rows = fitted.frame(last_of_each_key(kept, self._options.key))
        merge = partial(table.merge, key=self._options.key)
        steps = self._publisher.put(mark, added)
        return table.run(steps, lambda into, text: merge(rows, into, text))

    def _table(self, spark: SparkSession) -> SparkTable:
        owner, branch = self._task.owner, self._options.branch
        return SparkTable(spark, self._place.name, branch, key_of(owner), tag_of(owner, branch))


def _place(task: SinkTask) -> TablePlace:
    table = task.definition.table
    if table is None:
        raise SinkError("sink.table is required with the sink iceberg")
    return TablePlace(read_name(table), task.options, task.definition.partition_by)


def _compute(frame: DataFrame) -> None:
    """A batch that is there already is computed all the same: a query with state commits it only then."""
    frame.write.format("noop").mode("overwrite").save()
