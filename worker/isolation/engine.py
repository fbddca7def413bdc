"""An engine that runs each query in a process and a JVM of its own (`worker.query_engine.QueryEngine`)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from worker.isolation.home import HomeSpark
from worker.isolation.memory import memory_of, with_memory
from worker.isolation.prepared import PreparedProcess
from worker.isolation.query import IsolatedQuery
from worker.isolation.together import together
from worker.query_engine import QueryError, ignore_step
from worker.spark.engine import CLOSED, SparkEngine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from protocol.messages.checks import CheckResult
    from protocol.messages.lag import TaskLag
    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from protocol.messages.resources import WorkerResources
    from worker.isolation.process import TaskProcess
    from worker.query_engine import (
        CheckSpec,
        EngineDeath,
        NotedQuery,
        Prepared,
        QueryEngine,
        QuerySpec,
        SparkKind,
        UpcomingQuery,
    )
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

AT_ONCE: Final = 4
"""JVMs that are started at the same time: each takes a processor for some seconds."""


class IsolatedEngine:
    """Starts a process for each query, and has a Spark of its own for all other questions.

    The death of a process is the failure of its query, and never the death of this engine.
    """

    def __init__(
        self,
        settings: SparkSettings,
        may_write: Callable[[], bool],
        heap_mb: int | None = None,
        make_home: Callable[[SparkSettings, Callable[[], bool]], QueryEngine] = SparkEngine,
    ) -> None:
        """`may_write` is the worker's lease on itself; `heap_mb` a task's heap in MiB, where it says none."""
        self._settings = settings
        self._may_write = may_write
        self._heap_mb = heap_mb
        self._home = HomeSpark(lambda: make_home(settings, may_write))
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._queries: set[IsolatedQuery] = set()
        self._asked_before: Counter[tuple[str, bool]] = Counter()
        self._lock = threading.Lock()
        self._processes: set[TaskProcess] = set()
        self._is_over = True

    async def open(self) -> None:
        """Bring the worker's own Spark up; each task's comes up at its start."""
        await self._home.open()
        self._is_over = False

    @property
    def prepares(self) -> int:
        """As many as it starts at the same time."""
        return AT_ONCE

    async def prepare(self, query: UpcomingQuery) -> PreparedProcess | None:
        """Start a process that brings its Spark up, unless as many as may at once do so already."""
        if sum(each.is_coming_up for each in self._queries) >= AT_ONCE:
            return None
        return PreparedProcess(await self._begin(query))

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> IsolatedQuery:
        """Start a process, and the query in it; who gives that up has the process killed."""
        query = await self._taken(prepared, at) or await self._brought_up(spec, at)
        query.run(spec)
        await self._or_discard(query, query.until_begun())
        return query

    async def settle(self, spec: QuerySpec, at: Callable[[str], object] = ignore_step) -> None:
        """By the worker's own Spark."""
        await self._home.engine.settle(spec, at)

    async def check(self, spec: CheckSpec, at: Callable[[str], object] = ignore_step) -> CheckResult:
        """By the worker's own Spark."""
        return await self._home.engine.check(spec, at)

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """By the worker's own Spark."""
        return await self._home.engine.quarantine(spec, request, at)

    @property
    def measures(self) -> bool:
        """If the worker's own Spark does."""
        return self._home.engine.measures

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        """By the worker's own Spark: of a task that runs, too, only brokers and its checkpoint are asked."""
        return await self._home.engine.lag(spec)

    @property
    def kafka_requests(self) -> Mapping[tuple[str, bool], int]:
        """Of the worker's own Spark and of all that its tasks have had."""
        asked = self._asked_before + Counter(self._home.kafka_requests)
        for query in self._queries:
            asked.update(query.kafka_requests)
        return asked

    async def resources(self, group: str | None) -> WorkerResources | None:
        """Of the worker's own Spark and of those of its tasks, by their last word."""
        own = None
        with contextlib.suppress(QueryError):  # it is being opened again
            own = await self._home.engine.resources(group)
        told = [query.resources for query in self._queries]
        return together(own, [each for each in told if each is not None])

    async def noted(self, group: str) -> Sequence[NotedQuery]:
        """None: no query outlives its worker."""
        return await self._home.engine.noted(group)

    async def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """There is none."""
        return await self._home.engine.end_noted(query)

    async def died(self) -> EngineDeath:
        """For ever: what can be lost is one task's, or is opened again."""
        never: asyncio.Future[EngineDeath] = asyncio.get_running_loop().create_future()
        return await never

    @property
    def spark(self) -> SparkKind | None:
        """The worker's own; those of its tasks are of the same kind."""
        return self._home.kind

    @property
    def url(self) -> str | None:
        """That of the worker's own Spark; where a task's is, the log says at its start."""
        return self._home.engine.url

    def kill(self) -> bool:
        """Every process of a task with its JVM, then the worker's own JVM; no process begins after this."""
        with self._lock:
            self._is_over = True
            processes = tuple(self._processes)
        for process in processes:
            process.kill()
        self._home.kill()
        return True

    async def close(self) -> None:
        """End every query at once, and wait until nothing is left of their processes."""
        self._is_over = True
        aborts = [query.abort(CLOSED) for query in self._queries]
        await asyncio.gather(self._home.close(), *aborts)

    async def _taken(self, prepared: Prepared | None, at: Callable[[str], None]) -> IsolatedQuery | None:
        """The process that was prepared, when its Spark is up; None if there is none, or it has failed."""
        if not isinstance(prepared, PreparedProcess):
            return None
        query = prepared.query
        await self._or_discard(query, query.until_up(self._settings.start_timeout_s, at))
        return None if query.is_over else query

    async def _brought_up(self, spec: QuerySpec, at: Callable[[str], None]) -> IsolatedQuery:
        """Another process; its Spark is up, unless that has failed."""
        at("its turn to start a JVM")
        async with self._turns:
            query = await self._begin(spec)
            await self._or_discard(query, query.until_up(self._settings.start_timeout_s, at))
        return query

    async def _begin(self, spec: QuerySpec | UpcomingQuery) -> IsolatedQuery:
        self._require_open()
        memory = memory_of(spec.definition, self._heap_mb)
        settings = msgspec.structs.replace(
            self._settings,
            app_name=f"{self._settings.app_name} {spec.task}",
            conf=with_memory(self._settings.conf, memory),
            is_of_one_task=True,
        )
        query = await IsolatedQuery.begin(spec.group, spec.task, settings, self._may_write, self._keep)
        self._queries.add(query)
        query.process_over.add_done_callback(lambda _: self._forget(query))
        if self._is_over:  # it was closed meanwhile, and knew nothing of this one
            await query.abort(CLOSED)
        return query

    def _require_open(self) -> None:
        if self._is_over:
            raise QueryError("Spark is not running")

    def _keep(self, process: TaskProcess) -> None:
        """From its first moment on, so that none can be left out when all are killed."""
        with self._lock:
            self._processes.add(process)
            is_over = self._is_over
        process.exited.add_done_callback(lambda _: self._drop(process))
        if is_over:
            process.kill()

    def _forget(self, query: IsolatedQuery) -> None:
        self._queries.discard(query)
        self._asked_before.update(query.kafka_requests)

    def _drop(self, process: TaskProcess) -> None:
        """Whatever has become of its query."""
        with self._lock:
            self._processes.discard(process)

    async def _or_discard(self, query: IsolatedQuery, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except BaseException:
            if not query.is_over:
                await query.discard()
            raise
