"""The two sides of a gate whose batches are done on the server; see `worker.spark.batches.batch_gate`."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.errors import PySparkException

from worker.left_out import NOTHING
from worker.query_engine import QueryError
from worker.sinks.errors import BatchRefusedError, FencedError
from worker.spark.batches.batch_gate import tell_of_refusal
from worker.spark.causes import describe
from worker.spark.connect.gate_channel import BatchStatus, GateChannel, GateState, Orders
from worker.spark.connect.sessions import ConnectionLostError, SessionClosedError, asking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor as Pool
    from concurrent.futures import Future

    from worker.left_out import LeftOut
    from worker.sinks.fence import Owner


HELD_AT_MOST_S: Final = 60.0
"""How long a batch waits for a new owner. One that has died has another one after it by then."""
_LOOK_S: Final = 0.02


class ConnectGateControl:
    """The worker's side: it asks for what it wants, and reads what became of it."""

    def __init__(self, channel: GateChannel, pool: Pool, token: int, before: LeftOut = NOTHING) -> None:
        """Of the owner with `token`.

        Args:
            channel: to the process that does the batches.
            pool: what states are sent from, for the server may take its time.
            token: the owner's.
            before: what was left out under owners before this one, since the query was started.
        """
        self._channel = channel
        self._pool = pool
        self._token = token
        self._before = before
        self._sent: Future[None] | None = None
        self._known = BatchStatus(left_out=before)

    @property
    def total(self) -> int | None:
        """How many rows of the task the sink holds, as of the last batch."""
        return self._status().total

    @property
    def left_out(self) -> LeftOut:
        """How many rows were left out since this owner has the query, as of the last batch."""
        return self._status().left_out - self._before

    @property
    def is_occupied(self) -> bool:
        """A state that is on its way comes first: once it is known, no batch slips in unseen.

        A batch of a newer owner is none of this one's.
        """
        if self._sent is not None:
            self._sent.result()
        status = self._status()
        return status.inside and status.token in {None, self._token}

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
                self._channel.set_state(self._token, state)
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
    finds nobody inside, can rely on that; and so can an heir that was appointed and then finds nobody inside.
    `owner` is whom batches are done for: an heir from the first batch that begins after it was appointed.
    """

    def __init__(
        self,
        channel: GateChannel,
        owner: Owner,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Of a query that `owner` has started; `now` and `sleep` are for a batch that is held, in seconds."""
        self.owner = owner
        self.ended: QueryError | None = None
        self._channel = channel
        self._now = now
        self._sleep = sleep
        self._status = BatchStatus()

    def enter(self) -> None:
        """A batch begins. Of one that does not, whatever the reason, nothing is left inside.

        Raises:
            BatchRefusedError: a stop was asked for, the query's session is closed, or a new owner has it held
                for too long.
        """
        may_begin = False
        try:
            self._report(inside=True)
            may_begin = self._state_after_being_held() is GateState.OPEN
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
        if self._orders().state is GateState.CUT:
            raise BatchRefusedError("the batch was cut short: the query is being stopped")

    def fail(self, error: BaseException) -> None:
        """Keep why a batch failed, to be sent; a zombie's worker may not be there to hear of it."""
        cause = str(error) if isinstance(error, BatchRefusedError) else describe(error)
        self.ended = QueryError(cause, isinstance(error, FencedError))
        if self.ended.fenced:
            tell_of_refusal(self.owner, "fence", cause)

    def count(self, total: int, left_out: LeftOut) -> None:
        """Have `leave` tell how many rows of the task the sink holds, and how many were left out."""
        so_far = self._status.left_out + left_out
        self._status = msgspec.structs.replace(self._status, total=total, left_out=so_far)

    def _state_after_being_held(self) -> GateState:
        """An heir has the first batch wait until it has raised the fence: nobody else has its token then."""
        until = self._now() + HELD_AT_MOST_S
        while (state := self._state_by_the_heir()) is GateState.HELD:
            if self._now() > until:
                raise BatchRefusedError("the query has a new owner that does not go on with it")
            self._sleep(_LOOK_S)
        return state

    def _state_by_the_heir(self) -> GateState:
        """What the newest owner wants that was appointed; the batch is that one's."""
        while (orders := self._orders()).heir > self.owner.token:
            self.owner = replace(self.owner, token=orders.heir)
            self._report(inside=True)
        return orders.state

    def _report(self, *, inside: bool) -> None:
        self._status = msgspec.structs.replace(self._status, inside=inside, token=self.owner.token)
        with _session_needed():
            self._channel.set_status(self._status)

    def _orders(self) -> Orders:
        with _session_needed():
            return self._channel.orders(self.owner.token)


@contextlib.contextmanager
def _session_needed() -> Iterator[None]:
    try:
        yield
    except PySparkException:
        raise BatchRefusedError("the query's session is closed: the task has another owner") from None
