"""Which session runs a task, written down beside its checkpoint for whoever owns the task next.

Sessions have ids that nobody else has, rather than ids that can be reckoned from the task's name: a session
that was closed can never be opened again, and one that two owners shared could be closed by the older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from pyspark.errors import PySparkException

from worker.query_engine import NotedQuery
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session, token_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.streaming.query import StreamingQuery

    from worker.sinks.fence import Owner

log = structlog.get_logger(__name__)

_ENDING = "~session"
"""Of an entry's name; no task's name has a `~`."""
_STOPS = 40
"""Tries to stop a query; the server waits for half a second each time, which a batch may outlast."""


class SessionRecord:
    """One task's entry, the same before and after a reset."""

    def __init__(self, url: str, owner: Owner, spark: SparkSession, checkpoint: str) -> None:
        self._url = url
        self._owner = owner
        self._name = owner.task + _ENDING
        self._folder = DataFrameCheckpoint(spark, checkpoint.rpartition("/")[0])

    def end_former(self) -> None:
        """End the queries of the session that is written there, and the session."""
        former = _uuid(self._folder.read(self._name))
        if former is None:
            return
        end_queries(self._url, former, self._owner.task)

    def write(self, session_id: str) -> None:
        """Write down the owner's own."""
        self._folder.create(self._name, session_id)


def read_session_records(spark: SparkSession, folder: str) -> tuple[NotedQuery, ...]:
    """All entries in the folder of a group's checkpoints that tell a token; those of former versions do not.

    Raises:
        QueryError: they cannot be read, if only because one is being replaced at the moment.
    """
    entries = DataFrameCheckpoint(spark, folder).read_all(_ENDING)
    sessions = ((task, _uuid(text)) for task, text in sorted(entries.items()))
    return tuple(
        NotedQuery(task, token, session_id)
        for task, session_id in sessions
        if session_id is not None and (token := token_of(session_id)) is not None
    )


def end_queries(url: str, session_id: str, task: str) -> None:
    """End the queries of a task's session, and the session; it may be over already."""
    session = open_session(url, session_id)
    try:
        with asking():
            queries = session.streams.active
            for query in queries:
                stop_query(query)
                log.warning("stopped a query that a former owner left", task=task, run=query.runId)
    except SessionClosedError:
        return  # in order, or by somebody else
    finally:
        end_session(session)


def stop_query(query: StreamingQuery) -> None:
    """Returns when it is over: two queries at one checkpoint would be in each other's way."""
    for tries_left in reversed(range(_STOPS)):
        try:
            return query.stop()
        except PySparkException as error:
            if "failed to stop within" not in str(error) or not tries_left:
                raise
    return None


def _uuid(text: str | None) -> str | None:
    try:
        return str(UUID((text or "").strip()))
    except ValueError:
        return None
