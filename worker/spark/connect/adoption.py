"""The query that a former owner has left at the server, taken over while it runs.

It goes on in its session, which the new owner has from now on. Its batches are done by a process that looks
for the newest owner before each one. The new owner is appointed, with its gate held. A batch that is under
way then is done under the former token still, and is waited for; the one after it waits at the gate. So
nothing is under way under either token when the new owner raises the fence, as at any start. Then it opens
its gate, and the process opens the sink anew, under the new token.

A former owner that comes back, because it was only frozen, finds that there is a newer one and leaves the
session alone: it neither stops the query nor closes the session, and its gate is that of its own batches.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from definition.intervals import trigger_interval_ms
from worker.query_engine import QueryError
from worker.spark.backend import LeftRunning, TakenOver
from worker.spark.connect.gate_channel import GateChannel, GateState
from worker.spark.connect.handle import RemoteHandle, record_of
from worker.spark.connect.query_session import sealed
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session
from worker.spark.progress import is_idle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.connect.session import SparkSession

    from definition.document import Trigger
    from worker.sinks.fence import Owner
    from worker.spark.connect.gate_channel import BatchStatus
    from worker.spark.connect.query_session import ConnectQuerySession

PATIENCE_S: Final = 30.0
"""How long a batch of the former owner is waited for; one that takes longer is refused, and done anew."""
_LOOK_S: Final = 0.05


class ConnectLeftRunning(LeftRunning):
    """A query at the server that can be taken over."""

    session: ConnectQuerySession

    def __init__(
        self,
        session: ConnectQuerySession,
        query: Any,
        may_write: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the clock that the former owner's batch is waited for by, in seconds."""
        self.session = session
        self._query = query
        self._may_write = may_write
        self._now = now

    def take_over(self, trigger: Trigger | None, at: Callable[[str], None]) -> TakenOver | None:
        """As it says; None too if the session is closed meanwhile."""
        try:
            with asking():
                return self._take_over(trigger, at)
        except SessionClosedError:
            return None

    def go_on(self) -> None:
        """By its gate."""
        with asking():
            self.session.channel.set_state(self.session.owner.token, GateState.OPEN)

    def _take_over(self, trigger: Trigger | None, at: Callable[[str], None]) -> TakenOver | None:
        if not self._appoint(at):
            return None
        self.session.has_it_taken_over()
        if not self._is_handed_over(at):
            return None
        last = self._last_batch()
        handle = RemoteHandle(
            self._query,
            self.session.has_heir,
            is_bounded=trigger is not None and bool(trigger.available_now),
            commits_late=False,
            interval_ms=_interval_ms(trigger),
            former=last,
        )
        return TakenOver(handle, None if last < 0 else last)

    def _appoint(self, at: Callable[[str], None]) -> bool:
        """Noted down before: a query whose owner is nowhere to be found would never be ended.

        That takes a job of Spark's, in which this worker may have lost the task. If a newer owner has it,
        that is to be noted down.
        """
        session, token = self.session, self.session.owner.token
        if session.has_heir():
            return False
        self._require_lease()
        session.note_down(token)
        at("Spark, for a query that a former owner has left running")
        self._require_lease()
        session.channel.set_state(token, GateState.HELD)
        session.channel.appoint(token)
        if session.has_heir():
            session.note_down(session.channel.newest())
            return False
        return True

    def _require_lease(self) -> None:
        if not self._may_write():
            raise QueryError("the worker has lost its lease, so it may not take over another's query")

    def _is_handed_over(self, at: Callable[[str], None]) -> bool:
        """Wait for the batch that is done for the former owner; whether the query still runs after it."""
        pause, until = threading.Event(), self._now() + PATIENCE_S
        while not self._is_free():
            at("the batch that is being done under the former owner")
            if self._now() > until or not self._query.isActive:
                return False
            pause.wait(_LOOK_S)
        return bool(self._query.isActive) and not self.session.has_heir()

    def _is_free(self) -> bool:
        """A batch under the new token is one that waits at the gate."""
        status = self.session.channel.status()
        return not status.inside or status.token == self.session.owner.token

    def _last_batch(self) -> int:
        """The last that Spark has finished; when there is nothing to do, it tells of the one to come."""
        last = self._query.lastProgress
        if last is None:
            return -1
        return int(last.batchId) - (1 if is_idle(record_of(last)) else 0)


class Running(NamedTuple):
    """A query in its session, and what the process says that does its batches."""

    session: SparkSession
    query: Any
    status: BatchStatus


def find_running(url: str, session_id: str, owner: Owner, made_of: str) -> Running | None:
    """What runs in the session of a former owner, if it is made of the same, and as that one wanted it.

    A query that has done no batch yet is not taken over: whether its process knows of heirs is not known.
    """
    session = open_session(url, session_id)
    found = None
    try:
        with asking():
            found = _running(session, owner, sealed(made_of, session_id))
    except (SessionClosedError, ValueError):
        return None  # it is closed, or somebody has written other things there
    finally:
        if found is None:
            end_session(session, release=False)
    return found


def _running(session: SparkSession, owner: Owner, made_of: str) -> Running | None:
    """The task's query, and what its process says; None if it is not there, ends, or has a newer owner."""
    channel = GateChannel(session)
    if channel.made_of() != made_of:
        return None
    status = channel.status()
    if status.token is None or status.token >= owner.token:
        return None
    orders = channel.orders(status.token)
    if orders.state is not GateState.OPEN or orders.heir >= owner.token:
        return None
    queries = [query for query in session.streams.active if query.name == owner.task]
    return Running(session, queries[0], status) if len(queries) == 1 else None


def _interval_ms(trigger: Trigger | None) -> int | None:
    """In milliseconds, as a query's handle has it."""
    text = None if trigger is None else trigger.processing_time
    return None if text is None else trigger_interval_ms(text)
