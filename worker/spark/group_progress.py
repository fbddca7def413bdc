"""Telling a Kafka consumer group how far a task has come, for those who watch groups.

Spark keeps its progress in the checkpoint, and that alone counts: nobody of ours reads what is told here.
After a finished batch the offsets that its checkpoint has are written to the group that the source names, by
a thread of their own; of several that wait only the latest is written. An owner whose token is lower than the
one in the group stops writing. Kafka has no way to compare and set, so an owner that was frozen between its
look and its write may put the group back once; the next batch of the new owner mends it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from telemetry.scope import in_scope
from worker.lag.offset_log import of_source
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from definition.source import Source
    from worker.lag.offset_log import Offsets
    from worker.query_engine import QuerySpec
    from worker.spark.backend import Brokers

log = structlog.get_logger(__name__)


class _Commit(NamedTuple):
    """What is to be written for one source of a task."""

    task: str
    token: int
    group: str
    options: Mapping[str, Any]
    offsets: Offsets


class GroupProgress:
    """Writes for all queries of a worker, one after another; `tell` is for any thread and never waits."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._waiting: dict[tuple[str, str], _Commit] = {}
        self._fenced: dict[tuple[str, str], int] = {}
        self._troubled: set[tuple[str, str]] = set()
        self._news = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=in_scope(self._run), name="kafka-groups", daemon=True)
        self._thread.start()

    def tell(self, spec: QuerySpec, sources: Iterable[Source], committed: Iterable[Offsets]) -> None:
        """A batch is finished, and ended at `committed`; `sources` are those that name a group."""
        lines = list(committed)
        with self._news:
            for source in sources:
                group = source.commit_group or ""
                offsets = of_source(lines, source.options)
                key = (spec.task, group)
                if offsets and self._fenced.get(key) != spec.token:
                    self._waiting[key] = _Commit(spec.task, spec.token, group, source.options, offsets)
            self._news.notify()

    def close(self) -> None:
        """Write no more."""
        with self._news:
            self._over = True
            self._news.notify()

    def _run(self) -> None:
        while (commit := self._next()) is not None:
            self._write(commit)

    def _next(self) -> _Commit | None:
        with self._news:
            self._news.wait_for(lambda: self._over or self._waiting)
            return None if self._over else self._waiting.pop(next(iter(self._waiting)))

    def _write(self, commit: _Commit) -> None:
        """What fails is told once, and tried again with the next batch."""
        key = (commit.task, commit.group)
        about = {"task": commit.task, "token": commit.token, "consumer_group": commit.group}
        try:
            is_written = self._brokers.commit(commit.options, commit.group, commit.offsets, commit.token)
        except QueryError as error:
            if key not in self._troubled:
                self._troubled.add(key)
                log.warning("a consumer group cannot be told", why=error.cause.partition("\n")[0], **about)
            return
        self._troubled.discard(key)
        if not is_written:
            self._fenced[key] = commit.token
            log.info("a consumer group is another owner's", **about)
