"""The two sides of a gate whose batches are done on the server; `worker.spark.batch` has why there is one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec
from pyspark.errors import PySparkException

from worker.query_engine import QueryError
from worker.sinks.errors import BatchRefusedError, FencedError
from worker.spark.causes import describe
from worker.spark.connect.board import Note, Wish
from worker.spark.connect.sessions import ConnectionLostError, SessionClosedError, asking
from worker.spark.logs import tell_of_refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor as Pool
    from concurrent.futures import Future

    from worker.sinks.marks import Owner
    from worker.spark.connect.board import Board


class WorkerGate:
    """The worker's side: it asks for what it wants, and reads what became of it."""

    def __init__(self, board: Board, pool: Pool) -> None:
        """Wishes are sent from `pool`, for the server may take its time."""
        self._board = board
        self._pool = pool
        self._sent: Future[None] | None = None

    @property
    def total(self) -> int | None:
        """How many rows of the task the sink holds, as of the last batch."""
        return self._note().total

    @property
    def is_occupied(self) -> bool:
        """A wish that is on its way comes first: once it is known, no batch slips in unseen."""
        if self._sent is not None:
            self._sent.result()
        return self._note().inside

    def close(self) -> None:
        """Let no batch in any more."""
        self._send(Wish.CLOSED)

    def cut(self) -> None:
        """Make the batch inside fail at its next step."""
        self._send(Wish.CUT)

    def shut(self, then: Callable[[], None]) -> None:
        """No batch is ever inside the worker's process."""
        then()

    def _send(self, wish: Wish) -> None:
        with contextlib.suppress(RuntimeError):  # the worker is ending: the session ends with the query in it
            self._sent = self._pool.submit(self._wish, wish)

    def _wish(self, wish: Wish) -> None:
        """A server that cannot be reached has no use for it."""
        try:
            with asking():
                self._board.wish(wish)
        except (ConnectionLostError, SessionClosedError):
            return

    def _note(self) -> Note:
        try:
            with asking():
                return self._board.told()
        except (ConnectionLostError, SessionClosedError):
            return Note()


class BatchGate:
    """The batches' side, for `worker.spark.batch.guard`.

    It says that a batch is inside before it looks whether one may be: so whoever closes the gate, and then
    finds nobody inside, can rely on that.
    """

    def __init__(self, board: Board, owner: Owner) -> None:
        self.ended: QueryError | None = None
        self._board = board
        self._owner = owner
        self._note = Note()

    def enter(self) -> None:
        """A batch begins. Of one that does not, whatever the reason, nothing is left inside.

        Raises:
            BatchRefusedError: a stop was asked for, or the query's session is closed.
        """
        may_begin = False
        try:
            self._tell(inside=True)
            may_begin = self._wished() is Wish.OPEN
        finally:
            if not may_begin:
                self.leave()
        if not may_begin:
            raise BatchRefusedError("the query is being stopped")

    def leave(self) -> None:
        """The batch is done or has failed."""
        try:
            self._tell(inside=False)
        except BatchRefusedError:
            return  # nobody is there to read it

    def check(self) -> None:
        """To be called between the steps of a batch.

        Raises:
            BatchRefusedError: it is being cut short, or a newer owner has closed the query's session.
        """
        if self._wished() is Wish.CUT:
            raise BatchRefusedError("the batch was cut short: the query is being stopped")

    def fail(self, error: BaseException) -> None:
        """Keep why a batch failed, to be sent; a zombie's worker may not be there to hear of it."""
        cause = str(error) if isinstance(error, BatchRefusedError) else describe(error)
        self.ended = QueryError(cause, isinstance(error, FencedError))
        if self.ended.fenced:
            tell_of_refusal(self._owner, "fence", cause)

    def count(self, total: int) -> None:
        """Have `leave` tell how many rows of the task the sink holds."""
        self._note = msgspec.structs.replace(self._note, total=total)

    def _tell(self, *, inside: bool) -> None:
        self._note = msgspec.structs.replace(self._note, inside=inside)
        try:
            self._board.tell(self._note)
        except PySparkException:
            raise BatchRefusedError("the query's session is closed: the task has another owner") from None

    def _wished(self) -> Wish:
        try:
            return self._board.wished()
        except PySparkException:
            raise BatchRefusedError("the query's session is closed: the task has another owner") from None
