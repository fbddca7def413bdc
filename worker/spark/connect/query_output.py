"""The way out of a query whose batches are done on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.left_out import NOTHING
from worker.sinks.entrypoint_fence import Fence
from worker.spark.batches.batch_steps import AS_IT_IS
from worker.spark.connect.batch import FenceCallbacks, GatedFunction, SinkOpening, WriteToSink
from worker.spark.query_output import ClaimedSink, QueryOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from worker.left_out import LeftOut
    from worker.sinks.base import Field
    from worker.sinks.fence import Owner
    from worker.spark.batches.batch_steps import BatchSteps
    from worker.spark.connect.gate import ConnectGateControl


class ConnectQueryOutput(QueryOutput):
    """Claims the sink here, and sends what is to be done with each batch to the server."""

    def __init__(
        self,
        owner: Owner,
        gate: ConnectGateControl,
        session_id: str,
        checkpoint: str,
        may_write: Callable[[], bool],
    ) -> None:
        super().__init__(owner)
        asked = FenceCallbacks(may_write)
        self.fence = Fence(owner, asked.check, asked.mark, self.claimed.append, asked.repeated)
        self._gate = gate
        self._session_id = session_id
        self._checkpoint = checkpoint

    def __getstate__(self) -> dict[str, Any]:
        """What is of use to an entry point's function that has taken its context along to the server."""
        return {"owner": self.owner, "fence": self.fence, "claimed": self.claimed}

    @property
    def left_out(self) -> LeftOut:
        """As the batches' process has told."""
        return self._gate.left_out if self.is_gated else NOTHING

    @property
    def total(self) -> int | None:
        """As the batches' process has told."""
        return self._gate.total if self.is_gated else None

    def write(
        self, frame: DataFrame, claim: ClaimedSink, columns: Sequence[Field], steps: BatchSteps = AS_IT_IS
    ) -> DataStreamWriter:
        """With what it takes to open the sink on the server."""
        opening = SinkOpening(claim.definition, self.owner, columns, claim.aside)
        return self.each_batch(frame, WriteToSink(opening, steps))

    def each_batch(self, frame: DataFrame, function: Callable[[DataFrame, int], Any]) -> DataStreamWriter:
        """Through the gate on the server."""
        self.is_gated = True
        gated = GatedFunction(self.owner, self._session_id, self._checkpoint, function, self.hidden)
        return frame.writeStream.foreachBatch(gated)
