"""A streaming query in the worker's own JVM."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

from worker.spark.backend import Activity, Handle
from worker.spark.causes import describe_java, failure
from worker.spark.classic.kafka_stops import let_go_of_brokers
from worker.spark.classic.spills import Spills
from worker.spark.classic.whereabouts import look
from worker.spark.progress import is_idle
from worker.spark.whereabouts import whereabouts_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from worker.query_engine import QueryError
    from worker.spark.batches.batch_gate import BatchGate
    from worker.spark.whereabouts import Whereabouts

_ASYNC_PROGRESS = "AsyncProgressTrackingMicroBatchExecution"
"""What Spark runs a query by whose sink asks for that."""
_BOUNDED = {"AvailableNowTrigger", "OneTimeTrigger"}
_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")
"""In milliseconds; 0 is no interval."""


class JavaHandle(Handle):
    """Asks the JVM's own object: its answers come without PySpark's JSON around each."""

    def __init__(self, jvm: Any, query: StreamingQuery, gate: BatchGate) -> None:
        """`jvm` is the query's, `gate` the one that its batches go through."""
        self.query = query
        self._jvm = jvm
        self._gate = gate
        self._java: Any = query._jsq  # noqa: SLF001 - see above
        stream: Any = self._java.streamingQuery()
        self._thread: Any = stream.queryExecutionThread()
        self.commits_late = stream.getClass().getSimpleName() == _ASYNC_PROGRESS
        self._waits_since: str | None = None
        trigger = stream.trigger().toString()
        self.is_bounded = trigger in _BOUNDED
        interval = _INTERVAL.fullmatch(trigger)
        self.interval_ms = int(interval[1]) or None if interval else None
        self._spills = Spills(jvm, self._java)

    def last_batch(self) -> int:
        """By the last of Spark's records."""
        last = self._java.lastProgress()
        return -1 if last is None else int(last.batchId())

    def progress(self, after: int) -> list[dict[str, Any]]:
        """All records that Spark keeps are gone through only if more than one is new.

        A query that waits has one that is of no batch, and that is read once.
        """
        last = self._java.lastProgress()
        if last is None or last.batchId() <= after or str(last.timestamp()) == self._waits_since:
            return []
        records = self._java.recentProgress() if last.batchId() > after + 1 else []
        told = [json.loads(record.json()) for record in [*records, last]]
        self._waits_since = told[-1]["timestamp"] if is_idle(told[-1]) else None
        return told

    def spilled_bytes(self) -> int:
        """By Spark's own store of stages."""
        return self._spills.total()

    def activity(self) -> Activity:
        """By Spark's status of it; one that was told to end rests."""
        return self._by_status() if self._java.isActive() else Activity.RESTING

    def is_resting(self) -> bool:
        """By the same: one that was told to end may still be at its last batch."""
        return not self._thread.isAlive() or self._by_status() is not Activity.WORKING

    def _by_status(self) -> Activity:
        status = self._java.status()
        return Activity.of(
            is_trigger_active=status.isTriggerActive(),
            is_data_available=status.isDataAvailable(),
            message=str(status.message()),
        )

    def whereabouts(self) -> Whereabouts | None:
        """By the stack of the query's thread, Spark's scheduler, and the thread that its batch is done in."""
        seen = look(self._jvm, self._java, self._thread, self._gate.occupant)
        return None if seen is None else whereabouts_of(seen)

    def has_terminated(self) -> bool:
        """By the query's thread.

        `isActive` is false as soon as a stop was asked for, and `awaitTermination` takes its word for it.
        """
        return not self._thread.isAlive()

    def failure(self) -> QueryError | None:
        """As the gate remembers it, or the cause that the Java exception has at the bottom of it."""
        if self._gate.cause is not None:
            return failure(self._gate.cause, fenced=self._gate.fenced)
        exception = self._java.exception()
        return failure(describe_java(exception.get())) if exception.isDefined() else None

    def begin_no_more(self) -> None:
        """By the state that the query's thread looks at before each batch; a stop sets it, and interrupts.

        The gate refuses the next batch, too, but by then Spark has planned it: its offsets are in the
        checkpoint, and its plan has taken as long as that of any.
        """
        with contextlib.suppress(Exception):  # then it is as the gate has it
            state = self._java.streamingQuery().state()
            kind = state.get().getClass()
            over = kind.getClassLoader().loadClass(f"{kind.getPackageName()}.TERMINATED$")
            state.set(over.getField("MODULE$").get(None))

    def halt(self) -> None:
        """Interrupts the query's thread and cancels its jobs; what is not over then may wait for brokers."""
        try:
            self.query.stop()
        finally:
            if self._thread.isAlive():
                let_go_of_brokers(self._jvm, self._java.streamingQuery())
