"""The way out of a query whose batches come back to the worker: each is done in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker.left_out import NOTHING
from worker.sinks.entrypoint_fence import Fence
from worker.sinks.errors import SinkError
from worker.spark.batches.batch_gate import through_gate
from worker.spark.batches.batch_steps import AS_IT_IS
from worker.spark.batches.put_batch import put_batch
from worker.spark.batches.rows import CurrentBatch
from worker.spark.classic.callbacks import CallbackLine
from worker.spark.classic.plan_reuse import ReusedReading
from worker.spark.classic.rows import RddBatch
from worker.spark.query_output import ClaimedSink, QueryOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from worker.left_out import LeftOut
    from worker.sinks.base import Field
    from worker.sinks.fence import Mark, Owner
    from worker.spark.batches.batch_gate import BatchGate
    from worker.spark.batches.batch_steps import BatchSteps


class ClassicQueryOutput(QueryOutput):
    """Spark calls back from its stream thread (`foreachBatch`)."""

    def __init__(
        self,
        owner: Owner,
        gate: BatchGate,
        mark: Callable[[DataFrame, int], Mark],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """`begun` is called inside the query's first batch, before anything is done with it."""
        super().__init__(owner)
        self._begun: Callable[[], None] | None = begun
        self.fence = Fence(owner, gate.check, self._current_mark, self.claimed.append, self._repeated)
        self._gate = gate
        self._mark = mark
        self._total: int | None = None
        self._left_out = NOTHING
        self._current: CurrentBatch | None = None
        self._line = CallbackLine()

    @property
    def left_out(self) -> LeftOut:
        """As of the last batch."""
        return self._left_out

    @property
    def total(self) -> int | None:
        """As of the last batch."""
        return self._total

    def write(
        self, frame: DataFrame, claim: ClaimedSink, columns: Sequence[Field], steps: BatchSteps = AS_IT_IS
    ) -> DataStreamWriter:
        """With the very sink that was claimed."""
        del columns
        reused = None if steps.reading is None else ReusedReading(steps.reading)
        doing = replace(steps, reading=reused)

        def put(batch_frame: DataFrame, batch_id: int) -> None:
            mark = self._mark(batch_frame, batch_id)
            begun = batch_frame if reused is None else reused.begun(batch_frame)

            def backend(made: DataFrame) -> RddBatch:
                return RddBatch(made, mark, self._gate.check, batch_frame)

            put = put_batch(claim.sink, begun, doing, backend)
            self._total, self._left_out = put.total, self._left_out + put.left_out

        return self.each_batch(frame, put)

    def each_batch(self, frame: DataFrame, function: Callable[[DataFrame, int], Any]) -> DataStreamWriter:
        """The batch that is being done is remembered, for `fence.guard` to know it."""
        self.is_gated = True

        def remembered(batch_frame: DataFrame, batch_id: int) -> None:
            self._begin()
            self._current = CurrentBatch(batch_frame, batch_id)
            try:
                self._current.do(function)
            finally:
                self._current = None

        gated = through_gate(self._gate, remembered)

        def called(batch_frame: DataFrame, batch_id: int) -> None:
            self._line.note(batch_frame)  # over which one has come that is refused, too
            gated(batch_frame, batch_id)

        return frame.writeStream.foreachBatch(called)

    def close(self) -> None:
        """Let go of the sinks, and of the way on which batches came."""
        try:
            super().close()
        finally:
            self._line.close()

    def _begin(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun()

    def _current_mark(self) -> Mark:
        if self._current is None:
            raise SinkError("fence.guard works in a function that was given to context.foreach_batch only")
        return self._mark(self._current.frame, self._current.batch_id)

    def _repeated(self) -> None:
        if self._current is not None:
            self._current.is_repeated = True
