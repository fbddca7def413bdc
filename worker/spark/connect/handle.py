"""A streaming query on the server, and why it ended: of that, only the text of an exception gets here."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from worker.query_engine import QueryError
from worker.spark.backend import Activity, Handle
from worker.spark.causes import describe, failure
from worker.spark.connect.sessions import SessionClosedError, asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.errors import PySparkException
    from pyspark.sql.streaming.query import StreamingQuery

_SENT = re.compile(r"sparkherd:(\{.*\})")
_TAKEN = (
    "the query's session on the Spark Connect server is closed: another worker has taken the task over,"
    " or somebody has closed it there"
)
_INHERITED = "another worker has taken the query over as it runs on the Spark Connect server"


class RemoteHandle(Handle):
    """Every answer is one call to the server, some ten milliseconds."""

    outlives = True
    stopped = (
        "the query was stopped on the Spark Connect server: another worker has taken the task over, or"
        " somebody has stopped it there"
    )

    def __init__(
        self,
        query: StreamingQuery,
        has_heir: Callable[[], bool],
        *,
        is_bounded: bool,
        commits_late: bool,
        interval_ms: int | None = None,
        former: int = -1,
    ) -> None:
        """Of a query that Spark runs.

        Args:
            query: PySpark's own.
            has_heir: whether a newer owner has it, so that it is to be left alone.
            is_bounded: whether it comes to an end by itself.
            commits_late: as of `Handle`.
            interval_ms: of its trigger, in milliseconds.
            former: the last batch that is a former owner's to tell of.
        """
        self.query: Any = query
        self._has_heir = has_heir
        self._former = former
        self.is_bounded = is_bounded
        self.interval_ms = interval_ms
        self.commits_late = commits_late
        self._halting = False
        self._taken = self._is_inherited = False

    def last_batch(self) -> int:
        """By the last of Spark's records."""
        with asking():
            last = self.query.lastProgress
        return -1 if last is None else int(last.batchId)

    def progress(self, after: int) -> list[dict[str, Any]]:
        """All records that Spark keeps are fetched only if more than one is new."""
        if self._taken:
            return []
        after = max(after, self._former)
        try:
            with asking():
                last = self.query.lastProgress
                if last is None or last.batchId <= after:
                    return []
                records = self.query.recentProgress if last.batchId > after + 1 else []
        except SessionClosedError:
            self._taken = True
            return []
        return [record_of(each) for each in [*records, last] if each.batchId > after]

    def activity(self) -> Activity:
        """By Spark's status of it; one whose session is closed rests."""
        try:
            with asking():
                status = self.query.status
        except SessionClosedError:
            self._taken = True
            return Activity.RESTING
        return Activity.of(
            is_trigger_active=status["isTriggerActive"],
            is_data_available=status["isDataAvailable"],
            message=status["message"],
        )

    def has_terminated(self) -> bool:
        """A query that is being stopped calls itself inactive before it is."""
        if self._taken:
            return True
        try:
            with asking():
                active = self.query.isActive
        except SessionClosedError:
            self._taken = True
            return True
        return not (active or self._halting)

    def failure(self) -> QueryError | None:
        """In the exception that the server keeps of it."""
        if self._is_inherited:
            return QueryError(_INHERITED)
        if self._taken:
            return QueryError(_TAKEN)
        try:
            with asking():
                exception = self.query.exception()
        except SessionClosedError:
            return QueryError(_TAKEN)
        return None if exception is None else failure_of(exception)

    def has_passed_on(self) -> bool:
        """By the newest owner that its session knows of; who does not take it over closes the session."""
        try:
            with asking():
                is_inherited = self._has_heir()
        except SessionClosedError:
            self._taken = True
            return True
        if is_inherited:
            self._taken = self._is_inherited = True
        return is_inherited

    def halt(self) -> None:
        """Returns when the query is over; the process that did its batches is killed with it.

        A query that a newer owner has taken over goes on.
        """
        self._halting = True
        with asking():
            if self._has_heir():
                self._taken = self._is_inherited = True
            else:
                self.query.stop()
        self._halting = False


def record_of(told: Any) -> dict[str, Any]:
    """A record as a JVM tells it, as far as it is needed.

    PySpark's client leaves out what can be reckoned from the sources, and has their offsets as texts.
    """
    sources = told.sources
    return {
        "batchId": told.batchId,
        "numInputRows": sum(source.numInputRows for source in sources),
        "processedRowsPerSecond": sum(source.processedRowsPerSecond or 0.0 for source in sources),
        "batchDuration": told.batchDuration,
        "durationMs": dict(told.durationMs),
        "timestamp": told.timestamp,
        "eventTime": dict(told.eventTime),
        "stateOperators": [_operator(each) for each in told.stateOperators],
        "sources": [
            {
                "metrics": dict(source.metrics or {}),
                "endOffset": _offset(source.endOffset),
                "latestOffset": _offset(source.latestOffset),
            }
            for source in sources
        ],
    }


def _operator(told: Any) -> dict[str, Any]:
    """A stateful operator, as far as it is needed."""
    return {
        "numRowsTotal": told.numRowsTotal,
        "memoryUsedBytes": told.memoryUsedBytes,
        "numRowsDroppedByWatermark": told.numRowsDroppedByWatermark,
        "customMetrics": dict(told.customMetrics),
    }


def _offset(text: str | None) -> Any:
    """What a source calls an offset is JSON, for the most part."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def failure_text(ended: QueryError) -> str:
    """What the process that does the batches raises: one line, which Spark puts into words of its own."""
    return f"sparkherd:{msgspec.json.encode(asdict(ended)).decode()}"


def failure_of(exception: PySparkException) -> QueryError:
    """What such a process has sent; else what Spark says itself."""
    for text in _SENT.findall(str(exception)):
        try:
            sent = QueryError(**msgspec.json.decode(text))
        except (msgspec.DecodeError, TypeError):
            continue
        return sent if sent.fenced or sent.permanent else failure(sent.cause)
    return failure(describe(exception))
