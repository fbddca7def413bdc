"""A real worker on a real Spark that says when each query gets how far: STEP TASK WHEN, by the wall clock.

    python -m benchmarks.tools.spark_worker MANAGER GROUP CHECKPOINTS [JAR ...]

`granted`, `planned` (fence raised, table made, plan analysed), `checked` (its checkpoint), `started`; at the
end `spent` has what Spark itself tells of the first batch, in ms, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import TYPE_CHECKING, Any

import structlog

from worker.daemon import run
from worker.query_engine import ignore_step
from worker.settings import WorkerSettings
from worker.spark.classic.backend import ClassicBackend
from worker.spark.classic.query_session import ClassicQuerySession
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from worker.query_engine import Prepared, QuerySpec
    from worker.sinks.fence import Owner
    from worker.spark.classic.handle import JavaHandle
    from worker.spark.classic.pools import Pools
    from worker.spark.query import SparkQuery

CONF = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}


def say(step: str, task: str, told: object = None) -> None:
    """One line for whoever measures."""
    sys.stdout.write(f"{step} {task} {time.time() if told is None else told}\n")
    sys.stdout.flush()


class TimedQuerySession(ClassicQuerySession):
    """Says when the steps of a start are done."""

    def __init__(self, owner: Owner, *args: Any, pools: Pools) -> None:
        backend, *others = args
        super().__init__(backend, owner, *others, pools=pools)
        self._task = owner.task
        self._handle: JavaHandle | None = None

    def inherit(self, made_of: str) -> None:
        """What comes between the plan and the checkpoint."""
        say("planned", self._task)
        super().inherit(made_of)

    def start(self, writer: DataStreamWriter, begin: Callable[[], None]) -> JavaHandle:
        """What comes last."""
        say("checked", self._task)
        self._handle = super().start(writer, begin)
        say("started", self._task)
        return self._handle

    def close(self) -> None:
        """The query is over."""
        if self._handle is not None and (records := self._handle.progress(-1)):
            say("spent", self._task, json.dumps(records[0]["durationMs"], separators=(",", ":")))
        super().close()


class TimedBackend(ClassicBackend):
    """With timed sessions."""

    def query_session(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> ClassicQuerySession:
        """Timed."""
        return TimedQuerySession(owner, self.spark, conf, checkpoint, may_write, pools=self._pools)


class TimedEngine(SparkEngine):
    """Says when it is asked for a query: the manager has granted the claim, and the worker knows."""

    async def open(self) -> None:
        """From now on the worker joins."""
        await super().open()
        if isinstance(self._backend, ClassicBackend):
            timeout_s = self._backend._timeout_s  # noqa: SLF001 - it is to be the same backend, timed
            self._backend = TimedBackend(self._backend.spark, self._backend.jvm, timeout_s)
        say("joining", "-")

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> SparkQuery:
        """In a thread, as ever."""
        say("granted", spec.task)
        return await super().start(spec, at, prepared)


def make(settings: WorkerSettings, may_write: Callable[[], bool]) -> TimedEngine:
    """The engine of one worker."""
    spark = SparkSettings(
        app_name="bench", checkpoint_root=settings.checkpoint_root, conf=CONF, jars=settings.jars
    )
    return TimedEngine(spark, may_write)


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    manager, group, checkpoints, *jars = sys.argv[1:]
    asked = WorkerSettings(manager=(manager,), group=group, checkpoint_root=checkpoints, jars=tuple(jars))
    sys.exit(asyncio.run(run(asked, make, lambda _: None)))
