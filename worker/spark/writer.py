"""The second half of a definition: a DataStreamWriter for its sink, output mode and trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.sinks.base import Field
from worker.sinks.errors import SinkError
from worker.sinks.factory import open_sink
from worker.sinks.guard import Fence
from worker.spark.batch import guard
from worker.spark.rows import SparkBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from protocol.definition import Sink as SinkDefinition
    from protocol.definition import Trigger
    from worker.sinks.base import Mark, Owner, Sink
    from worker.sinks.fence import FenceRow
    from worker.spark.batch import Gate


class Outlet:
    """The way out of one query: its fenced sink, if it has one, and what became of its batches.

    `total` is how many rows of the task that sink holds; `is_gated` whether all batches go through the gate;
    `claimed` what the fence rows said when they were raised; `fence` is what an entry point is given.
    """

    def __init__(self, owner: Owner, gate: Gate, mark: Callable[[DataFrame, int], Mark]) -> None:
        self.owner = owner
        self.total: int | None = None
        self.is_gated = False
        self.claimed: list[FenceRow] = []
        self.fence = Fence(owner, gate.check, self._current_mark, self.claimed.append)
        self._gate = gate
        self._mark = mark
        self._current: tuple[DataFrame, int] | None = None
        self._sinks: list[Sink] = []

    def claim(self, definition: SinkDefinition) -> Sink | None:
        """Open the definition's sink and raise its fence; None if the sink is Spark's own, which has none."""
        sink = open_sink(definition, self.owner)
        if sink is not None:
            self._sinks.append(sink)
            self.claimed.append(sink.claim())
        return sink

    def write(self, frame: DataFrame, sink: Sink) -> DataStreamWriter:
        """A writer that puts every batch into a claimed sink."""
        sink.prepare(fields(frame))

        def put(batch_frame: DataFrame, batch_id: int) -> None:
            written = sink.write(SparkBatch(batch_frame, self._mark(batch_frame, batch_id), self._gate.check))
            self.total = written.total

        return self.each_batch(frame, put)

    def each_batch(self, frame: DataFrame, function: Callable[[DataFrame, int], Any]) -> DataStreamWriter:
        """A writer that hands every batch to `function`, through the query's gate."""
        self.is_gated = True

        def remembered(batch_frame: DataFrame, batch_id: int) -> None:
            self._current = batch_frame, batch_id
            try:
                function(batch_frame, batch_id)
            finally:
                self._current = None

        return frame.writeStream.foreachBatch(guard(self._gate, remembered))

    def _current_mark(self) -> Mark:
        if self._current is None:
            raise SinkError("fence.guard works in a function that was given to context.foreach_batch only")
        return self._mark(*self._current)

    def close(self) -> None:
        """Let go of the sink."""
        for sink in self._sinks:
            sink.close()


def fields(frame: DataFrame) -> list[Field]:
    """The frame's columns as sinks know them."""
    return [Field(each["name"], each["type"]) for each in frame.schema.jsonValue()["fields"]]


def spark_sink(frame: DataFrame, definition: SinkDefinition) -> DataStreamWriter:
    """A writer into one of Spark's own sinks."""
    return frame.writeStream.format(definition.format).options(**definition.options)


def apply_trigger(writer: DataStreamWriter, trigger: Trigger | None) -> DataStreamWriter:
    """The writer with the definition's trigger; without one, as it is."""
    if trigger is None:
        return writer
    if trigger.processing_time is not None:
        return writer.trigger(processingTime=trigger.processing_time)
    return writer.trigger(availableNow=trigger.available_now)
