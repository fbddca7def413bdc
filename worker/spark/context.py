"""What an entry point is given: everything of its task, and sinks that keep the task's promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from definition.sink import Sink as SinkDefinition
from definition.sinks.sql import SQL_SINK
from worker.query_engine import QueryError
from worker.spark.columns import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from definition.document import Definition
    from worker.sinks.entrypoint_fence import Fence
    from worker.spark.query_output import QueryOutput


@dataclass(frozen=True)
class TaskContext:
    """The argument of an entry point.

    `spark` is the task's own session: views and SQL settings are not shared with other tasks. `checkpoint`
    is where Spark keeps the query's progress.
    """

    spark: SparkSession
    definition: Definition
    checkpoint: str
    _output: QueryOutput

    @property
    def fence(self) -> Fence:
        """What keeps a repeated or late batch from doing its work twice (docs/exactly-once.md)."""
        return self._output.fence

    @property
    def options(self) -> Mapping[str, Any]:
        """The definition's `options`."""
        return self.definition.options

    @property
    def group(self) -> str:
        """The group the task was created in; a transfer does not change it."""
        return self._output.owner.group

    @property
    def task(self) -> str:
        """The name the task was created under; a transfer does not change it."""
        return self._output.owner.task

    @property
    def token(self) -> int:
        """The fencing token; it has grown since whoever ran the task before."""
        return self._output.owner.token

    def sink(self, frame: DataFrame, **options: Any) -> DataStreamWriter:
        """A writer of `frame` into the fenced SQL sink with these `options`, or into the definition's `sink`.

        Raises:
            QueryError: there are neither options nor a definition's sink, or they are wrong.
            SinkError: the sink cannot take the frame's columns, or a newer owner has the task.
        """
        definition = self._sink_definition(options)
        claim = self._output.claim(definition, self.spark)
        output = self._output
        if claim is None:
            writer = output.spark_sink(frame, definition)
        else:
            columns = fields(frame)
            output.prepare(claim, columns)
            writer = output.write(frame, claim, columns)
        return writer.outputMode(self.definition.output_mode)

    def foreach_batch(self, frame: DataFrame, function: Callable[[DataFrame, int], Any]) -> DataStreamWriter:
        """A writer that hands every batch to `function(batch, batch_id)`, as `foreachBatch` of Spark's does.

        Unlike that, it ends cleanly when the task is stopped, and `fence.guard` works in it. Without that
        it does not fence: a function that is called again for a batch id must not count that batch twice.
        """
        return self._output.each_batch(frame, function).outputMode(self.definition.output_mode)

    def _sink_definition(self, options: dict[str, Any]) -> SinkDefinition:
        if not options:
            if self.definition.sink is None:
                raise QueryError("context.sink: needs url and table, or a sink in the definition")
            return self.definition.sink
        definition = SinkDefinition(format=SQL_SINK, options=options)
        if problems := list(definition.faults()):
            raise QueryError("; ".join(f"context.sink: {each.path}: {each.message}" for each in problems))
        if fault := definition.output_mode_fault(self.definition.output_mode):
            raise QueryError(f"context.sink: output_mode: {fault}")
        return definition
