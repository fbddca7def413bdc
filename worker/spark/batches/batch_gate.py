"""The gate between Spark's stream thread and what is done with a batch.

Why there is one (tried with PySpark 4.3): `query.stop()` cancels the jobs of a batch while its Python
function runs; the function dies with a long traceback, which goes back to the JVM, where one of Spark's own
regular expressions overflows the stack over it. So the batch in flight is let through, the next one is
refused at the entry, and what leaves here is short. A batch that was not done leaves by raising: returning
would commit it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from worker.sinks.errors import BatchRefusedError, FencedError
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from worker.sinks.fence import Owner


log = structlog.get_logger(__name__)

_LEASE_LOST = "the worker has lost its lease, so it may not write"


class GateControl(Protocol):
    """The worker's side of a gate; `BatchGate` has both sides."""

    @property
    def is_occupied(self) -> bool:
        """Whether a batch is inside; may block."""
        ...

    def close(self) -> None:
        """Let no batch in any more; one that is inside goes on. Never blocks."""
        ...

    def cut(self) -> None:
        """Make the batch inside fail at its next step. Never blocks."""
        ...

    def shut(self, then: Callable[[], None]) -> None:
        """Spark has ended the query, or is gone: call `then` when no batch is inside this process any more.

        Until then it may write: what a thread of Python's does goes on without the JVM that has called it.
        Never blocks.
        """
        ...


class GateEntry(Protocol):
    """The batches' side of a gate."""

    def enter(self) -> None:
        """A batch begins, or is refused by raising."""
        ...

    def leave(self) -> None:
        """The batch is done or has failed."""
        ...

    def fail(self, error: BaseException) -> None:
        """Remember why a batch failed."""
        ...


class BatchGate:
    """Both sides of a gate whose batches are done in the worker itself; remembers why one failed."""

    def __init__(
        self, may_write: Callable[[], bool], refused: Callable[[str, str], None] = lambda _by, _why: None
    ) -> None:
        """`refused` hears of each batch that came to nothing because the task may be somebody else's by now.

        It is told what was in the way, `fence` or `lease`, and in which words.
        """
        self.cause: str | None = None
        self.fenced = False
        self._may_write = may_write
        self._refused = refused
        self._lock = threading.Lock()
        self.occupant: int | None = None
        """The thread that does the batch inside."""
        self._closed = threading.Event()
        self._cut = threading.Event()
        self._left: list[Callable[[], None]] = []

    def enter(self) -> None:
        """A batch begins.

        Raises:
            BatchRefusedError: a stop was asked for, or the worker may not write any more.
        """
        with self._lock:
            if self._closed.is_set():
                raise BatchRefusedError("the query is being stopped")
            if not self._may_write():
                self.cause = _LEASE_LOST
                self._refused("lease", _LEASE_LOST)
                raise BatchRefusedError(_LEASE_LOST)
            self.occupant = threading.get_ident()

    def leave(self) -> None:
        """The batch is done or has failed."""
        with self._lock:
            self.occupant = None
            left, self._left = self._left, []
        for then in left:
            then()

    def fail(self, error: BaseException) -> None:
        """Remember why a batch failed; what is left of it after its way through Java is no use to anybody."""
        self.cause = str(error) if isinstance(error, BatchRefusedError) else describe(error)
        self.fenced = isinstance(error, FencedError)
        if self.fenced or not self._may_write():
            self._refused("fence" if self.fenced else "lease", self.cause)

    def check(self) -> None:
        """To be called between the steps of a batch: a worker that was frozen inside one finds out here.

        Raises:
            BatchRefusedError: the batch is being cut short, or the worker may not write any more.
        """
        if self._cut.is_set():
            raise BatchRefusedError("the batch was cut short: the query is being stopped")
        if not self._may_write():
            raise BatchRefusedError(_LEASE_LOST)

    def close(self) -> None:
        """Let no batch in any more; one that is inside goes on."""
        with self._lock:
            self._closed.set()

    @property
    def is_occupied(self) -> bool:
        """Whether a batch is inside."""
        return self.occupant is not None

    def cut(self) -> None:
        """Make the batch inside fail at its next step."""
        self._cut.set()

    def shut(self, then: Callable[[], None]) -> None:
        """Let no batch in any more, cut the one inside, and call `then` when none is."""
        self.close()
        self.cut()
        with self._lock:
            if self.occupant is not None:
                self._left.append(then)
                return
        then()


def through_gate(
    gate: GateEntry, function: Callable[[DataFrame, int], Any]
) -> Callable[[DataFrame, int], None]:
    """`function` as Spark's `foreachBatch` is to call it: through the gate, and with short errors only."""

    def gated(frame: DataFrame, batch_id: int) -> None:
        gate.enter()
        try:
            function(frame, batch_id)
        except BaseException as error:  # noqa: BLE001 - nothing may slip through to Spark's regular expression
            gate.fail(error)
            raise BatchRefusedError(f"batch {batch_id} failed: {type(error).__name__}") from None
        finally:
            gate.leave()

    return gated


def tell_of_refusal(owner: Owner, by: str, why: str) -> None:
    """A write of a zombie that came to nothing: what an operator wants to count."""
    log.warning("write refused", group=owner.group, task=owner.task, token=owner.token, by=by, why=why)
