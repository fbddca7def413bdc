"""The two sides of a gate whose batches are done on the server; see `worker.spark.batches.batch_gate`.

A worker and the process on the server that does its query's batches share no memory, but one session, and so
its settings: each side has one that it writes and the other one reads. A call takes some milliseconds.
"""

from __future__ import annotations

import contextlib
from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from pyspark.errors import PySparkException

from worker.left_out import NOTHING, LeftOut
from worker.query_engine import QueryError
from worker.sinks.errors import BatchRefusedError, FencedError
from worker.spark.batches.batch_gate import tell_of_refusal
from worker.spark.causes import describe
from worker.spark.connect.sessions import ConnectionLostError, SessionClosedError, asking

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor as Pool
    from concurrent.futures import Future

    from pyspark.sql import SparkSession

    from worker.sinks.fence import Owner

_GATE = "sparkherd.gate"
_BATCH = "sparkherd.batch"


class GateState(Enum):
    """What the worker wants of the query's batches."""

    OPEN = "open"
    CLOSED = "closed"
    CUT = "cut"


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches' process says of itself; `total` is how many rows of the task the sink holds.

    `left_out` counts those that were left out since the query was started.
    """

    inside: bool = False
    total: int | None = None
    left_out: LeftOut = NOTHING


class GateChannel:
    """The two settings of one query's session that its gate consists of."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session  # it closes its connection when nobody has it any more

    def set_state(self, state: GateState) -> None:
        """By the worker."""
        self._session.conf.set(_GATE, state.value)

    def state(self) -> GateState:
        """For the batches' process."""
        return GateState(self._session.conf.get(_GATE, GateState.OPEN.value))

    def set_status(self, status: BatchStatus) -> None:
        """By the batches' process."""
        self._session.conf.set(_BATCH, msgspec.json.encode(status).decode())

    def status(self) -> BatchStatus:
        """For the worker."""
        text = self._session.conf.get(_BATCH, "")
        return msgspec.json.decode(text, type=BatchStatus) if text else BatchStatus()


class ConnectGateControl:
    """The worker's side: it asks for what it wants, and reads what became of it."""

    def __init__(self, channel: GateChannel, pool: Pool) -> None:
        """States are sent from `pool`, for the server may take its time."""
        self._channel = channel
        self._pool = pool
        self._sent: Future[None] | None = None
        self._known = BatchStatus()

    @property
    def total(self) -> int | None:
        """How many rows of the task the sink holds, as of the last batch."""
        return self._status().total

    @property
    def left_out(self) -> LeftOut:
        """How many rows were left out since the query was started, as of the last batch."""
        return self._status().left_out

    @property
    def is_occupied(self) -> bool:
        """A state that is on its way comes first: once it is known, no batch slips in unseen."""
        if self._sent is not None:
            self._sent.result()
        return self._status().inside

    def close(self) -> None:
        """Let no batch in any more."""
        self._send(GateState.CLOSED)

    def cut(self) -> None:
        """Make the batch inside fail at its next step."""
        self._send(GateState.CUT)

    def shut(self, then: Callable[[], None]) -> None:
        """No batch is ever inside the worker's process."""
        then()

    def _send(self, state: GateState) -> None:
        with contextlib.suppress(RuntimeError):  # the worker is ending: the session ends with the query in it
            self._sent = self._pool.submit(self._set_state, state)

    def _set_state(self, state: GateState) -> None:
        """A server that cannot be reached has no use for it."""
        try:
            with asking():
                self._channel.set_state(state)
        except (ConnectionLostError, SessionClosedError):
            return

    def _status(self) -> BatchStatus:
        """As far as is known: what was counted stays so where nobody answers, and no batch is inside then."""
        try:
            with asking():
                self._known = self._channel.status()
        except (ConnectionLostError, SessionClosedError):
            return msgspec.structs.replace(self._known, inside=False)
        return self._known


class ConnectGateEntry:
    """The batches' side, for `worker.spark.batches.batch_gate.through_gate`.

    It says that a batch is inside before it looks whether one may be: so whoever closes the gate, and then
    finds nobody inside, can rely on that.
    """

    def __init__(self, channel: GateChannel, owner: Owner) -> None:
        self.ended: QueryError | None = None
        self._channel = channel
        self._owner = owner
        self._status = BatchStatus()

    def enter(self) -> None:
        """A batch begins. Of one that does not, whatever the reason, nothing is left inside.

        Raises:
            BatchRefusedError: a stop was asked for, or the query's session is closed.
        """
        may_begin = False
        try:
            self._report(inside=True)
            may_begin = self._state() is GateState.OPEN
        finally:
            if not may_begin:
                self.leave()
        if not may_begin:
            raise BatchRefusedError("the query is being stopped")

    def leave(self) -> None:
        """The batch is done or has failed."""
        try:
            self._report(inside=False)
        except BatchRefusedError:
            return  # nobody is there to read it

    def check(self) -> None:
        """To be called between the steps of a batch.

        Raises:
            BatchRefusedError: it is being cut short, or a newer owner has closed the query's session.
        """
        if self._state() is GateState.CUT:
            raise BatchRefusedError("the batch was cut short: the query is being stopped")

    def fail(self, error: BaseException) -> None:
        """Keep why a batch failed, to be sent; a zombie's worker may not be there to hear of it."""
        cause = str(error) if isinstance(error, BatchRefusedError) else describe(error)
        self.ended = QueryError(cause, isinstance(error, FencedError))
        if self.ended.fenced:
            tell_of_refusal(self._owner, "fence", cause)

    def count(self, total: int, left_out: LeftOut) -> None:
        """Have `leave` tell how many rows of the task the sink holds, and how many were left out."""
        so_far = self._status.left_out + left_out
        self._status = msgspec.structs.replace(self._status, total=total, left_out=so_far)

    def _report(self, *, inside: bool) -> None:
        self._status = msgspec.structs.replace(self._status, inside=inside)
        try:
            self._channel.set_status(self._status)
        except PySparkException:
            raise BatchRefusedError("the query's session is closed: the task has another owner") from None

    def _state(self) -> GateState:
        try:
            return self._channel.state()
        except PySparkException:
            raise BatchRefusedError("the query's session is closed: the task has another owner") from None
