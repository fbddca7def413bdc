"""Which session runs a task, written down beside its checkpoint for whoever owns the task next.

Sessions have ids that nobody else has, rather than ids that can be reckoned from the task's name: a session
that was closed can never be opened again. Two owners share one only where the newer one has taken the query
over as it runs (`worker.spark.connect.adoption`); the older one then leaves it alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import structlog
from pyspark.errors import PySparkException

from protocol.messages.base import Token
from worker.query_engine import NotedQuery
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.gate_channel import GateChannel
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session, token_of
from worker.spark.folder_names import folder_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.streaming.query import StreamingQuery

    from worker.sinks.fence import Owner

log = structlog.get_logger(__name__)

_ENDING = "~session"
"""Of an entry's name; no task's name has a `~`."""
_STOPS = 40
"""Tries to stop a query; the server waits for half a second each time, which a batch may outlast."""


class NotedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner writes down of its query.

    Args:
        session: the id of the session that it runs in.
        token: the owner's; None in entries of former versions whose sessions' ids do not tell it.
        task: by which names sinks know it; None in entries of former versions, which have it in their names.
    """

    session: str
    token: Token | None = None
    task: str | None = None


class SessionRecord:
    """One task's entry, the same before and after a reset."""

    def __init__(self, url: str, owner: Owner, spark: SparkSession, checkpoint: str) -> None:
        self._url = url
        self._owner = owner
        self._name = folder_name(owner.task, _ENDING)
        self._folder = DataFrameCheckpoint(spark, checkpoint.rpartition("/")[0])

    def read(self) -> NotedSession | None:
        """What is written there, None if nothing is."""
        return noted_session(self._folder.read(self._name))

    def end_former(self) -> None:
        """End the queries of the session that is written there, and the session."""
        former = self.read()
        if former is not None:
            end_queries(self._url, former.session, self._owner.task, self._owner.token)

    def write(self, session_id: str, token: int) -> None:
        """Write down which session has the query, and who has that."""
        noted = NotedSession(session=session_id, token=token, task=self._owner.task)
        self._folder.create(self._name, msgspec.json.encode(noted).decode())


def read_session_records(spark: SparkSession, folder: str) -> tuple[NotedQuery, ...]:
    """All entries in the folder of a group's checkpoints that tell a token; those of former versions may not.

    Raises:
        QueryError: they cannot be read, if only because one is being replaced at the moment.
    """
    entries = DataFrameCheckpoint(spark, folder).read_all(_ENDING)
    found = ((name, noted_session(text)) for name, text in sorted(entries.items()))
    return tuple(
        NotedQuery(noted.task or name, noted.token, noted.session)
        for name, noted in found
        if noted is not None and noted.token is not None
    )


def end_queries(url: str, session_id: str, task: str, token: int) -> int | None:
    """End the queries of a task's session, and the session; it may be over already.

    Args:
        url: of the server.
        session_id: the session's.
        task: whose it is.
        token: whoever has a newer one has taken the query over, and keeps it.

    Returns:
        The token of whoever keeps it, if somebody does.
    """
    session = open_session(url, session_id)
    is_ours = False
    try:
        with asking():
            newest = GateChannel(session).newest()
            if newest > token:
                return newest
            is_ours = True
            for query in session.streams.active:
                stop_query(query)
                log.warning("stopped a query that a former owner left", task=task, run=query.runId)
    except SessionClosedError:
        return None  # in order, or by somebody else
    finally:
        end_session(session, release=is_ours)
    return None


def stop_query(query: StreamingQuery) -> None:
    """Returns when it is over: two queries at one checkpoint would be in each other's way."""
    for tries_left in reversed(range(_STOPS)):
        try:
            return query.stop()
        except PySparkException as error:
            if "failed to stop within" not in str(error) or not tries_left:
                raise
    return None


def noted_session(text: str | None) -> NotedSession | None:
    """What an entry says, None if it is none; those of former versions are a session's id and no more."""
    told = (text or "").strip()
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        noted = msgspec.json.decode(told, type=NotedSession)
        return msgspec.structs.replace(noted, session=str(UUID(noted.session)))
    with contextlib.suppress(ValueError):
        session = str(UUID(told))
        return NotedSession(session=session, token=token_of(session))
    return None
