"""The second half of a definition: a DataStreamWriter for its sink, output mode and trigger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from worker.query_engine import ignore_step
from worker.sinks.closing import let_go
from worker.sinks.factory import open_sink
from worker.spark.batches.batch_steps import AS_IT_IS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from definition.document import Trigger
    from definition.sink import Sink as SinkDefinition
    from worker.left_out import LeftOut
    from worker.sinks.base import Condition, Connected, Field, Sink
    from worker.sinks.entrypoint_fence import Fence
    from worker.sinks.fence import FenceRow, Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.batches.batch_steps import BatchSteps


class ClaimedSink(NamedTuple):
    """A fenced sink whose fence has been raised, and what it was opened by."""

    definition: SinkDefinition
    sink: Sink
    aside: PuttingAside | None = None


class QueryOutput(ABC):
    """The way out of one query: its fenced sink, if it has one, and what becomes of its batches.

    `is_gated` says whether all batches go through the gate; `claimed` what the fence rows said when they were
    raised; `fence` is what an entry point is given; `hidden` are the secrets in the task's definition; `at`
    is told what the start comes to; `table` is where the query writes, if it is a table of Spark's;
    `connected` is the way to the definition's sink, if that is there already.
    """

    fence: Fence
    hidden: tuple[str, ...] = ()
    at: Callable[[str], None] = staticmethod(ignore_step)
    table: str | None = None

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.connected: Connected | None = None
        self.is_gated = False
        self.claimed: list[FenceRow] = []
        self._sinks: list[Sink] = []

    @property
    @abstractmethod
    def left_out(self) -> LeftOut:
        """How many rows did not go to the sink since the query was started, as far as is known; may block."""

    @property
    @abstractmethod
    def total(self) -> int | None:
        """How many rows of the task its fenced sink holds, as far as is known; may block."""

    def claim(
        self, definition: SinkDefinition, spark: SparkSession, aside: PuttingAside | None = None
    ) -> ClaimedSink | None:
        """Open the definition's sink and raise its fence; None if the sink is Spark's own, which has none.

        Args:
            definition: the sink's.
            spark: the query's session.
            aside: where rows go that are put aside; None if none are.
        """
        sink = open_sink(definition, self.owner, lambda: spark, aside, self.connected)
        if sink is None:
            return None
        self.connected = None
        self._sinks.append(sink)
        self.at(f"the fence in {sink.place}")
        self.claimed.append(sink.claim())
        return ClaimedSink(definition, sink, aside)

    def spark_sink(self, frame: DataFrame, definition: SinkDefinition) -> DataStreamWriter:
        """A writer into one of Spark's own sinks."""
        self.table = definition.table
        writer = frame.writeStream.options(**definition.options).partitionBy(*definition.partition_by)
        return writer if definition.spark_format is None else writer.format(definition.spark_format)

    def begin(self, writer: DataStreamWriter) -> StreamingQuery:
        """Have Spark run the query; to be called with all that it is to know said to the writer."""
        return writer.start() if self.table is None else writer.toTable(self.table)

    def prepare(self, claim: ClaimedSink, columns: Sequence[Field]) -> Sequence[Condition]:
        """Make a claimed sink ready, so that what is wrong with it shows before the query starts.

        Args:
            claim: the sink.
            columns: those that it gets.

        Returns:
            What it asks of each row.
        """
        claim.sink.prepare(columns)
        return claim.sink.conditions()

    @abstractmethod
    def write(
        self, frame: DataFrame, claim: ClaimedSink, columns: Sequence[Field], steps: BatchSteps = AS_IT_IS
    ) -> DataStreamWriter:
        """A writer that puts every batch into a claimed sink, which is prepared.

        Args:
            frame: what Spark is to hand over in batches.
            claim: the sink.
            columns: those of the result, which the sink gets.
            steps: what is to be done with each batch before.
        """

    @abstractmethod
    def each_batch(self, frame: DataFrame, function: Callable[[DataFrame, int], Any]) -> DataStreamWriter:
        """A writer that hands every batch to `function`, through the query's gate."""

    def close(self) -> None:
        """Let go of the sinks, each whatever becomes of the others."""
        for each in (self.connected, *self._sinks):
            let_go(each)


def apply_trigger(writer: DataStreamWriter, trigger: Trigger | None) -> DataStreamWriter:
    """The writer with the definition's trigger; without one, as it is."""
    if trigger is None:
        return writer
    if trigger.processing_time is not None:
        return writer.trigger(processingTime=trigger.processing_time)
    return writer.trigger(availableNow=trigger.available_now)
