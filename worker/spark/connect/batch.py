"""What the server does with each batch; PySpark pickles it by name, so `worker` must be there, too.

A process of the server's does the batches of one query; what it needs between them is kept in this module.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from telemetry.secrets import SECRETS
from worker.query_engine import QueryError
from worker.sinks.closing import let_go
from worker.sinks.errors import BatchRefusedError, SinkError
from worker.sinks.factory import open_sink
from worker.sinks.fence import Mark
from worker.spark.batches.batch_gate import through_gate
from worker.spark.batches.put_batch import put_batch
from worker.spark.batches.rows import CurrentBatch
from worker.spark.checkpoint_rules import read_query_id
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.gate import ConnectGateEntry
from worker.spark.connect.gate_channel import GateChannel
from worker.spark.connect.handle import failure_text
from worker.spark.connect.rows import ArrowBatch
from worker.spark.connect.sessions import open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from definition.sink import Sink as SinkDefinition
    from worker.sinks.base import Field, Sink
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.batches.batch_steps import BatchSteps

_LOCAL_URL = "SPARK_CONNECT_LOCAL_URL"
"""Where Spark tells its Python processes to find the server they belong to."""


@dataclass(frozen=True, slots=True)
class GatedFunction:
    """The function that Spark calls for each batch: `function`, through the query's gate.

    `session_id` is the query's own session; the one that the batch's frame has is a copy of it. `hidden` are
    the secrets of the task, which no cause of a failure may tell.
    """

    owner: Owner
    session_id: str
    checkpoint: str
    function: Callable[[DataFrame, int], Any]
    hidden: tuple[str, ...] = ()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Do the batch, or raise: returning would commit it."""
        process = _process_of(self)
        process.batch = current = CurrentBatch(frame, batch_id)
        try:
            through_gate(process.gate, lambda _frame, _batch_id: current.do(self.function))(frame, batch_id)
        except BatchRefusedError as error:
            raise BatchRefusedError(failure_text(process.gate.ended or QueryError(str(error)))) from None
        finally:
            process.batch = None


class BatchProcess:
    """The state of the process on the server that does a query's batches."""

    def __init__(self, function: GatedFunction) -> None:
        session: Any = open_session(os.environ[_LOCAL_URL], function.session_id)
        self.gate = ConnectGateEntry(GateChannel(session), function.owner)
        self.batch: CurrentBatch | None = None
        for secret in function.hidden:
            SECRETS.learn(secret)
        self._checkpoint = function.checkpoint
        self._query_id: str | None = None

    def mark(self) -> Mark:
        """Which batch is being done.

        Raises:
            SinkError: the checkpoint cannot be read.
        """
        if self.batch is None:
            raise SinkError("no batch is being done")
        folder = DataFrameCheckpoint(self.batch.frame.sparkSession, self._checkpoint)
        try:
            if self._query_id is None:
                self._query_id = read_query_id(folder.place, folder.read("metadata") or "")
            return Mark(self._query_id, self.batch.batch_id, folder.digest(self.batch.batch_id))
        except QueryError as error:
            raise SinkError(str(error)) from None


class FenceCallbacks:
    """What a `worker.sinks.entrypoint_fence.Fence` asks, in the worker or in the process that does a batch.

    It goes to the server with an entry point's function, and the worker's lease stays behind.
    """

    def __init__(self, may_write: Callable[[], bool] | None) -> None:
        self._may_write = may_write

    def __reduce__(self) -> tuple[type[FenceCallbacks], tuple[None]]:
        return FenceCallbacks, (None,)

    def check(self) -> None:
        """Raises unless the task is still its owner's, as far as that can be known here."""
        if _this_process is not None:
            _this_process.gate.check()
        elif self._may_write is not None and not self._may_write():
            raise SinkError("the worker has lost its lease, so it may not write")

    def mark(self) -> Mark:
        """Which batch is being done."""
        if _this_process is None or _this_process.batch is None:
            raise SinkError("fence.guard works in a function that was given to context.foreach_batch only")
        return _this_process.mark()

    def repeated(self) -> None:
        """The batch that is being done was written before."""
        if _this_process is not None and _this_process.batch is not None:
            _this_process.batch.is_repeated = True


@dataclass(frozen=True, slots=True)
class SinkOpening:
    """What it takes to open a task's sink where its batches are."""

    definition: SinkDefinition
    owner: Owner
    columns: Sequence[Field]
    aside: PuttingAside | None = None

    def open(self, spark: SparkSession) -> Sink:
        """The claim is the worker's once more, under the same token: a newer owner's stays."""
        sink = open_sink(self.definition, self.owner, lambda: spark, self.aside)
        if sink is None:
            raise SinkError("the sink is one of Spark's own")
        sink.claim()
        sink.prepare(self.columns)
        return sink


class WriteToSink:
    """Puts each batch into the fenced sink of a definition, opened where the batches are.

    It is opened anew for each owner that the query has in turn.
    """

    def __init__(self, opening: SinkOpening, steps: BatchSteps) -> None:
        self._opening = opening
        self._steps = steps
        self._sink: Sink | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write it, unless the fence refuses."""
        del batch_id
        process = _running_process()
        sink = self._sink_of(process.gate.owner, frame.sparkSession)
        mark = process.mark()

        def backend(made: DataFrame) -> ArrowBatch:
            return ArrowBatch(made, mark, process.gate.check)

        put = put_batch(sink, frame, self._steps, backend)
        process.gate.count(put.total, put.left_out)

    def _sink_of(self, owner: Owner, spark: SparkSession) -> Sink:
        if self._opening.owner != owner:
            self._opening = replace(self._opening, owner=owner)
            let_go(self._sink)
            self._sink = None
        if self._sink is None:
            self._sink = self._opening.open(spark)
        return self._sink


_this_process: BatchProcess | None = None


def _process_of(function: GatedFunction) -> BatchProcess:
    global _this_process  # noqa: PLW0603 - a process of the server's does the batches of one query
    if _this_process is None:
        _this_process = BatchProcess(function)
    return _this_process


def _running_process() -> BatchProcess:
    if _this_process is None:
        raise SinkError("no batch is being done")
    return _this_process
