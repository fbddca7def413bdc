"""The query that a former owner has left at the server, taken over while it runs.

It goes on in its session, which the new owner has from now on. Its batches are done by a process that looks
for an heir before each one. So the new owner is appointed first. A batch that was under way then is done
under the former token still, and is waited for; the ones after it open the sink anew, under the new token.
Only then the new owner raises the fence, and so refuses nothing that is under way.

A former owner that comes back, because it was only frozen, finds that there is an heir and leaves the session
alone: it neither stops the query nor closes the session, and what it wants of the gate nobody reads.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from definition.intervals import trigger_interval_ms
from worker.query_engine import QueryError
from worker.spark.backend import LeftRunning
from worker.spark.connect.gate_channel import GateChannel, GateState
from worker.spark.connect.handle import RemoteHandle
from worker.spark.connect.query_session import ConnectQuerySession, FoundSession
from worker.spark.connect.sessions import (
    ConnectionLostError,
    SessionClosedError,
    asking,
    end_session,
    open_session,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.connect.session import SparkSession

    from definition.document import Trigger
    from worker.sinks.fence import Owner
    from worker.spark.connect.gate_channel import BatchStatus
    from worker.spark.connect.query_session import Server
    from worker.spark.connect.session_record import NotedSession

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
        made_of: str,
        may_write: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the clock that the former owner's batch is waited for by, in seconds."""
        self.session = session
        self._query = query
        self._made_of = made_of
        self._may_write = may_write
        self._now = now

    def take_over(
        self, trigger: Trigger | None, reported: int | None, at: Callable[[str], None]
    ) -> RemoteHandle | None:
        """It is noted down before: a query whose heir is nowhere to be found would never be ended."""
        if not self._may_write():
            raise QueryError("the worker has lost its lease, so it may not take over another's query")
        self.session.note_down(self._made_of)
        with asking():
            self.session.channel.appoint(self.session.owner.token)
        self.session.is_ours = self.session.output.is_gated = True
        if not self._is_handed_over(at):
            return None
        return RemoteHandle(
            self._query,
            self.session.has_heir,
            is_bounded=trigger is not None and bool(trigger.available_now),
            commits_late=False,
            interval_ms=_interval_ms(trigger),
            former=self._last_batch() if reported is None else reported,
        )

    def _last_batch(self) -> int:
        with asking():
            last = self._query.lastProgress
        return -1 if last is None else int(last.batchId)

    def _is_handed_over(self, at: Callable[[str], None]) -> bool:
        """Wait for the batch that is done for the former owner; whether the query still runs after it."""
        pause, until = threading.Event(), self._now() + PATIENCE_S
        while not self._is_free():
            at("the batch that is being done under the former owner")
            if self._now() > until or not self._is_active():
                return False
            pause.wait(_LOOK_S)
        return self._is_active()

    def _is_free(self) -> bool:
        with asking():
            status = self.session.channel.status()
        return not status.inside or status.token == self.session.owner.token

    def _is_active(self) -> bool:
        with asking():
            return bool(self._query.isActive)


def find_left_running(
    server: Server, owner: Owner, noted: NotedSession, checkpoint: str, may_write: Callable[[], bool]
) -> ConnectLeftRunning | None:
    """What runs in the session that a former owner has noted down, if it is as that one wanted it.

    A query that has done no batch yet is not taken over: whether its process knows of heirs is not known.
    """
    session = open_session(server.remote, noted.session)
    try:
        with asking():
            found = _running(session, owner)
    except SessionClosedError:
        found = None
    except ConnectionLostError:
        end_session(session, release=False)
        raise
    if found is None or noted.made_of is None:
        end_session(session, release=False)
        return None
    query, status = found
    mine = FoundSession(noted.session, session, status.left_out)
    query_session = ConnectQuerySession(server, owner, mine, checkpoint, may_write)
    query_session.is_ours = False
    return ConnectLeftRunning(query_session, query, noted.made_of, may_write)


def _running(session: SparkSession, owner: Owner) -> tuple[Any, BatchStatus] | None:
    """The task's query, and what its process says; None if it is not there, ends, or has a newer owner."""
    channel = GateChannel(session)
    status = channel.status()
    if status.token is None or status.token >= owner.token or channel.has_heir(owner.token):
        return None
    if channel.state(status.token) is not GateState.OPEN:
        return None
    queries = [query for query in session.streams.active if query.name == owner.task]
    return (queries[0], status) if len(queries) == 1 else None


def _interval_ms(trigger: Trigger | None) -> int | None:
    """In milliseconds, as a query's handle has it."""
    text = None if trigger is None else trigger.processing_time
    return None if text is None else trigger_interval_ms(text)
