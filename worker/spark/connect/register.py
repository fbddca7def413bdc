"""Which session runs a task, written down beside its checkpoint for whoever owns the task next.

Sessions have ids that nobody else has, rather than ids that can be reckoned from the task's name: a session
that was closed can never be opened again, and one that two owners shared could be closed by the older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from worker.sinks.marks import Owner

log = structlog.get_logger(__name__)


class Register:
    """One task's entry, the same before and after a reset."""

    def __init__(self, url: str, owner: Owner, spark: SparkSession, checkpoint: str) -> None:
        self._url = url
        self._owner = owner
        self._name = f"{owner.task}~session"  # no task's name has a `~`
        self._folder = DataFrameCheckpoint(spark, checkpoint.rpartition("/")[0])

    def end_former(self) -> None:
        """End the queries of the session that is written there, and the session."""
        former = _uuid(self._folder.read(self._name))
        if former is None:
            return
        session = open_session(self._url, former)
        try:
            with asking():
                queries = session.streams.active
                for query in queries:
                    query.stop()
                    log.warning(
                        "stopped a query that a former owner left", task=self._owner.task, run=query.runId
                    )
        except SessionClosedError:
            return  # in order, or by somebody else
        finally:
            end_session(session)

    def enter(self, session_id: str) -> None:
        """Write down the owner's own."""
        self._folder.create(self._name, session_id)


def _uuid(text: str | None) -> str | None:
    try:
        return str(UUID((text or "").strip()))
    except ValueError:
        return None
