"""The engine of a real worker: `worker.query_engine.QueryEngine` over one Spark."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import structlog

from telemetry.foreign_errors import FAILURES, text_of
from worker.query_engine import NoQuarantineError, QueryError, ignore_step
from worker.sinks.errors import FencedError, SinkError
from worker.spark.causes import refusal
from worker.spark.checks.check import check
from worker.spark.errand_runs import ErrandRuns
from worker.spark.kafka.lag import measure
from worker.spark.kafka.lag_looks import LagLooks
from worker.spark.launch import launch, settle
from worker.spark.monitor import Monitor
from worker.spark.opening import open_backend
from worker.spark.prepared import KEPT, PreparedStart, PreparedStarts, plan
from worker.spark.quarantine.requests import answer
from worker.spark.query import SparkQuery
from worker.spark.starts import AT_ONCE, Starts, StartSteps
from worker.spark.warm_up import warm_up
from worker.threads import DaemonPool, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from protocol.messages.checks import CheckResult
    from protocol.messages.lag import TaskLag
    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from protocol.messages.resources import WorkerResources
    from worker.query_engine import (
        CheckSpec,
        EngineDeath,
        NotedQuery,
        Prepared,
        QuerySpec,
        SparkKind,
        UpcomingQuery,
    )
    from worker.spark.backend import SparkBackend
    from worker.spark.errand_runs import Cancellation
    from worker.spark.prepared import Plan
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

Result = TypeVar("Result")

LOOKS = 8
"""Queries that are looked at at the same time, for whether their last batch is done."""
CLOSE_TIMEOUT_S = 10
CLOSED = "Spark was closed"


class SparkEngine:
    """Runs queries in one Spark session, every call to it in a thread."""

    def __init__(self, settings: SparkSettings, may_write: Callable[[], bool]) -> None:
        """`may_write` is the worker's lease on itself, asked at the entry of every batch."""
        self._settings = settings
        self._may_write = may_write
        self._starts = Starts(settings.start_timeout_s)
        self._prepared = PreparedStarts(time.monotonic)
        self._settlings = asyncio.Semaphore(AT_ONCE)
        self._looks = DaemonPool(LOOKS, "spark-look")
        self._checks: ErrandRuns[CheckResult] = ErrandRuns("check")
        self._quarantines: ErrandRuns[QuarantineAnswer] = ErrandRuns("quarantine request")
        self._lag_looks = LagLooks()
        self._monitor = Monitor()
        self._backend: SparkBackend | None = None
        self._opened: SparkBackend | None = None

    async def open(self) -> None:
        """Bring Spark up, or reach it, and warm it if the settings say so; takes some seconds."""
        self._loop = asyncio.get_running_loop()
        self._died: asyncio.Future[EngineDeath] = self._loop.create_future()
        self._backend = await asyncio.wrap_future(
            in_thread("spark-open", partial(open_backend, self._settings))
        )
        self._opened = self._backend
        self._backend.watch(self._on_death)
        self._monitor.start(self._backend.is_loss)
        log.info("spark is up", at=self._settings.place, url=self.url, checkpoints=self._settings.root)
        if self._settings.warm_up_s:
            await warm_up(self._start_small, self._settings)

    @property
    def prepares(self) -> int:
        """None behind a server, where the former owner's query is taken over as it runs."""
        return KEPT if self._backend is not None and self._backend.plans_ahead else 0

    async def prepare(self, query: UpcomingQuery) -> PreparedStart | None:
        """Begin to plan it, in a thread; nothing can be done for an entry point, whose code would run."""
        if query.definition.entrypoint is not None:
            return None
        return self._prepared.begin(query.task, partial(self._plan, query))

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> SparkQuery:
        """Start a query, in a thread that nobody has to wait for."""
        steps = StartSteps(lambda step: self._loop.call_soon_threadsafe(at, step))
        async with _plan_of(prepared, at) as made:
            launching = partial(self._launch, spec, self._settings, self._may_write, steps, made)
            return await self._starts.run(spec.task, launching, steps, _undo)

    async def _start_small(self, spec: QuerySpec, settings: SparkSettings) -> SparkQuery:
        """One that is nobody's: it writes without a lease, which there is none of before the worker joins."""
        steps = StartSteps(ignore_step)
        launching = partial(self._launch, spec, settings, lambda: True, steps)
        return await self._starts.run(spec.task, launching, steps, _undo)

    async def settle(self, spec: QuerySpec, at: Callable[[str], object] = ignore_step) -> None:
        """Raise the fence of a task that is not to run, and end what may be left of it."""
        steps = StartSteps(
            lambda step: self._loop.call_soon_threadsafe(at, step), "keeping a former owner from writing"
        )
        await self._starts.run(spec.task, partial(self._settle, spec, steps), steps, _keep, self._settlings)

    async def check(self, spec: CheckSpec, at: Callable[[str], object] = ignore_step) -> CheckResult:
        """In a thread, one check at a time."""

        def look(cancellation: Cancellation) -> CheckResult:
            return self._ask(lambda backend: check(backend, spec, self._settings, cancellation))

        return await self._checks.run(look, at)

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """In a thread, one request at a time; one that is given up ends at its next step."""

        def see_to_it(cancellation: Cancellation) -> QuarantineAnswer:
            return self._ask(lambda backend: _answer(backend, spec, self._settings, request, cancellation.at))

        return await self._quarantines.run(see_to_it, at)

    @property
    def measures(self) -> bool:
        """If there is a client of Kafka's."""
        return self._backend is not None and self._backend.brokers is not None

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        """In a thread of its own, for half a minute at most: brokers and stores may take their time."""

        def look(at: Callable[[str], None]) -> TaskLag | None:
            return self._ask(lambda backend: measure(backend, spec, self._settings, at))

        return await self._lag_looks.run(spec.task, look)

    @property
    def kafka_requests(self) -> Mapping[tuple[str, bool], int]:
        """Of this Spark; another one begins at nothing."""
        brokers = None if self._opened is None else self._opened.brokers
        return {} if brokers is None else brokers.requests()

    async def resources(self, group: str | None) -> WorkerResources | None:
        """In a thread of its own, which may have many files to look through."""
        folder = None if group is None else f"{self._settings.root}/{group}"
        ask = partial(self._ask, lambda backend: backend.resources(folder))
        return await asyncio.wrap_future(in_thread("spark-resources", ask))

    async def noted(self, group: str) -> Sequence[NotedQuery]:
        """In a thread of its own, which whoever loses patience leaves behind."""
        ask = partial(self._ask, lambda backend: backend.noted(f"{self._settings.root}/{group}"))
        return await asyncio.wrap_future(in_thread("spark-noted", ask))

    async def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """End it, in a thread of its own that may be left behind."""
        ask = partial(self._ask, lambda backend: backend.end_noted(query))
        return await asyncio.wrap_future(in_thread("spark-noted", ask))

    def _ask(self, question: Callable[[SparkBackend], Result]) -> Result:
        if self._backend is None:
            raise QueryError("Spark is not running")
        with _trouble():
            return question(self._backend)

    async def died(self) -> EngineDeath:
        """Wait for the loss of Spark."""
        return await asyncio.shield(self._died)

    @property
    def spark(self) -> SparkKind | None:
        """As it was when it came up."""
        return None if self._backend is None else self._backend.kind

    @property
    def url(self) -> str | None:
        """The Spark UI, if it is switched on."""
        return None if self._backend is None else self._backend.url

    def kill(self) -> bool:
        """Also while it is being closed, which may take its time."""
        return self._opened is None or self._opened.kill()

    async def close(self) -> None:
        """End every query at once, then let go of Spark."""
        self._prepared.close()
        backend, self._backend = self._backend, None
        if backend is not None:
            await self._stop_all()
            await self._let_go()
            await asyncio.to_thread(backend.close)
        await asyncio.to_thread(self._monitor.close)
        self._looks.shutdown(wait=False)

    async def _let_go(self) -> None:
        """What is still stopping goes before its backend, which has to answer for that, and may not."""
        losing = in_thread("spark-let-go", partial(self._monitor.lose_all, CLOSED))
        await asyncio.wait({asyncio.wrap_future(losing)}, timeout=CLOSE_TIMEOUT_S)

    async def _stop_all(self) -> None:
        """A batch that waits for its database may take longer than anybody has; its transaction is undone."""
        queries = [query for query in self._monitor.watched() if isinstance(query, SparkQuery)]
        stops = [asyncio.ensure_future(query.abort(CLOSED)) for query in queries]
        if stops:
            await asyncio.wait(stops, timeout=CLOSE_TIMEOUT_S)

    def _plan(self, query: UpcomingQuery, steps: StartSteps) -> Plan:
        return self._ask(lambda backend: plan(backend, query, self._settings, steps))

    def _launch(
        self,
        spec: QuerySpec,
        settings: SparkSettings,
        may_write: Callable[[], bool],
        steps: StartSteps,
        made: Plan | None = None,
    ) -> SparkQuery:
        launched = self._ask(lambda backend: launch(backend, spec, settings, may_write, steps, plan=made))
        query = SparkQuery(spec, launched, self._loop, self._looks)
        self._monitor.add(query)
        return query

    def _settle(self, spec: QuerySpec, steps: StartSteps) -> None:
        self._ask(lambda backend: settle(backend, spec, self._settings, self._may_write, steps))

    def _on_death(self, death: EngineDeath) -> None:
        """Called from the thread that watches Spark."""
        self._monitor.lose_all(death.how)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell_death, death)

    def _tell_death(self, death: EngineDeath) -> None:
        if not self._died.done():
            log.error("spark is lost", how=death.how)
            self._died.set_result(death)


@contextlib.asynccontextmanager
async def _plan_of(prepared: Prepared | None, at: Callable[[str], None]) -> AsyncIterator[Plan | None]:
    """What was made ready for a start; whatever becomes of that, nothing of it is left over."""
    if not isinstance(prepared, PreparedStart):
        yield None
        return
    made = await prepared.taken(at)
    try:
        yield made
    finally:
        prepared.discard()


async def _keep(_: None) -> None:
    """A fence that has been raised stays where it is."""


async def _undo(query: SparkQuery) -> None:
    await query.stop(0)


def _answer(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    request: QuarantineRequest,
    at: Callable[[str], None],
) -> QuarantineAnswer:
    """As `answer`; a Spark that is lost meanwhile has not refused anything."""
    try:
        return answer(backend, spec, settings, request, at)
    except Exception as error:
        if backend.is_loss(error):
            raise QueryError("Spark does not answer any more", outage=True) from error
        raise


@contextlib.contextmanager
def _trouble() -> Iterator[None]:
    """Whatever goes wrong is a `QueryError`."""
    try:
        yield
    except (QueryError, NoQuarantineError):
        raise
    except SinkError as error:
        raise QueryError(text_of(error), fenced=isinstance(error, FencedError)) from error
    except FAILURES as error:
        raise refusal(error) from error
