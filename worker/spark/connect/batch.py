"""What the server does with each batch; PySpark pickles it by name, so `worker` must be there, too.

A process of the server's does the batches of one query; what it needs between them is kept in this module.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telemetry.secrets import SECRETS
from worker.query_engine import QueryError
from worker.sinks.errors import BatchRefusedError, SinkError
from worker.sinks.factory import open_sink
from worker.sinks.marks import Mark
from worker.spark.batch import guard
from worker.spark.checkpoint_rules import read_query_id
from worker.spark.connect.board import Board
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.failure import failure_text
from worker.spark.connect.gate import BatchGate
from worker.spark.connect.rows import ArrowBatch
from worker.spark.connect.sessions import open_session
from worker.spark.rows import AtHand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from definition.document import Sink as SinkDefinition
    from worker.sinks.base import Field, Sink
    from worker.sinks.marks import Owner

_LOCAL_URL = "SPARK_CONNECT_LOCAL_URL"
"""Where Spark tells its Python processes to find the server they belong to."""


@dataclass(frozen=True, slots=True)
class Delivery:
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
        desk = _desk(self)
        desk.batch = at_hand = AtHand(frame, batch_id)
        try:
            guard(desk.gate, lambda _frame, _batch_id: at_hand.do(self.function))(frame, batch_id)
        except BatchRefusedError as error:
            raise BatchRefusedError(failure_text(desk.gate.ended or QueryError(str(error)))) from None
        finally:
            desk.batch = None


class Desk:
    """What the process has at hand while it does a query's batches."""

    def __init__(self, delivery: Delivery) -> None:
        session: Any = open_session(os.environ[_LOCAL_URL], delivery.session_id)
        self.gate = BatchGate(Board(session), delivery.owner)
        self.batch: AtHand | None = None
        for secret in delivery.hidden:
            SECRETS.learn(secret)
        self._checkpoint = delivery.checkpoint
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


class Here:
    """Finds out where it is: in the worker, before the query runs, or in the process that does a batch.

    Its methods are what a `worker.sinks.guard.Fence` asks; that goes with an entry point's function to the
    server, and the worker's lease stays behind.
    """

    def __init__(self, may_write: Callable[[], bool] | None) -> None:
        self._may_write = may_write

    def __reduce__(self) -> tuple[type[Here], tuple[None]]:
        return Here, (None,)

    def check(self) -> None:
        """Raises unless the task is still its owner's, as far as that can be known here."""
        if _at is not None:
            _at.gate.check()
        elif self._may_write is not None and not self._may_write():
            raise SinkError("the worker has lost its lease, so it may not write")

    def mark(self) -> Mark:
        """Which batch is being done."""
        if _at is None or _at.batch is None:
            raise SinkError("fence.guard works in a function that was given to context.foreach_batch only")
        return _at.mark()

    def repeated(self) -> None:
        """The batch that is being done was written before."""
        if _at is not None and _at.batch is not None:
            _at.batch.is_repeated = True


class PutRows:
    """Puts each batch into the fenced sink of a definition, opened where the batches are."""

    def __init__(self, definition: SinkDefinition, owner: Owner, fields: Sequence[Field]) -> None:
        self._definition = definition
        self._owner = owner
        self._fields = fields
        self._sink: Sink | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write it, unless the fence refuses."""
        del batch_id
        desk = _present()
        sink = self._open()
        desk.gate.count(sink.write(ArrowBatch(frame, desk.mark(), desk.gate.check)).total)

    def _open(self) -> Sink:
        """The claim is the worker's once more, under the same token: a newer owner's stays."""
        if self._sink is None:
            sink = open_sink(self._definition, self._owner)
            if sink is None:
                raise SinkError("the sink is one of Spark's own")
            sink.claim()
            sink.prepare(self._fields)
            self._sink = sink
        return self._sink


_at: Desk | None = None


def _desk(delivery: Delivery) -> Desk:
    global _at  # noqa: PLW0603 - a process of the server's does the batches of one query
    if _at is None:
        _at = Desk(delivery)
    return _at


def _present() -> Desk:
    if _at is None:
        raise SinkError("no batch is being done")
    return _at
