"""The engine of a real worker: `worker.executor.Executor` over one Spark."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import structlog

from telemetry.scope import in_scope
from worker.executor import StartError
from worker.sinks.errors import FencedError, SinkError
from worker.spark.causes import describe
from worker.spark.launch import launch
from worker.spark.monitor import Monitor
from worker.spark.opening import open_engine
from worker.spark.query import SparkQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.executor import QuerySpec
    from worker.spark.engine import Engine
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

THREADS = 8
"""Queries that start at the same time, and as many that stop: a start that hangs is not in a stop's way."""
CLOSE_TIMEOUT_S = 10


class SparkExecutor:
    """Runs queries in one Spark session, every call to it in a thread."""

    def __init__(self, settings: SparkSettings, may_write: Callable[[], bool]) -> None:
        """`may_write` is the worker's lease on itself, asked at the entry of every batch."""
        self._settings = settings
        self._may_write = may_write
        self._starts = ThreadPoolExecutor(THREADS, thread_name_prefix="spark-start")
        self._stops = ThreadPoolExecutor(THREADS, thread_name_prefix="spark-stop")
        self._monitor = Monitor()
        self._engine: Engine | None = None
        self._abandoned: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Bring Spark up, or reach it; takes some seconds."""
        self._loop = asyncio.get_running_loop()
        self._died: asyncio.Future[str] = self._loop.create_future()
        opening = in_scope(partial(open_engine, self._settings))
        self._engine = await self._loop.run_in_executor(self._starts, opening)
        self._engine.watch(self._on_death)
        self._monitor.start(self._engine.losses)
        log.info("spark is up", at=self._settings.place, url=self.url)

    async def start(self, spec: QuerySpec) -> SparkQuery:
        """Start a query. If the caller gives up meanwhile, the query is ended once it is there."""
        launching = self._loop.run_in_executor(self._starts, self._launch, spec)
        try:
            query = await asyncio.shield(launching)
        except asyncio.CancelledError:
            launching.add_done_callback(self._abandon)
            raise
        return query

    async def died(self) -> str:
        """Wait for the loss of Spark."""
        return await asyncio.shield(self._died)

    @property
    def url(self) -> str | None:
        """The Spark UI, if it is switched on."""
        return None if self._engine is None else self._engine.url

    async def close(self) -> None:
        """End every query at once, then let go of Spark."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await self._stop_all()
            await asyncio.to_thread(engine.close)
            self._monitor.lose_all("Spark was closed")
        await asyncio.to_thread(self._monitor.close)
        self._starts.shutdown(wait=False)
        self._stops.shutdown(wait=False)

    async def _stop_all(self) -> None:
        """A batch that waits for its database may take longer than anybody has; its transaction is undone."""
        queries = [query for query in self._monitor.watched() if isinstance(query, SparkQuery)]
        stops = [asyncio.ensure_future(query.stop(0)) for query in queries]
        if stops:
            await asyncio.wait(stops, timeout=CLOSE_TIMEOUT_S)

    def _launch(self, spec: QuerySpec) -> SparkQuery:
        engine = self._engine
        if engine is None:
            raise StartError("Spark is not running")
        try:
            launched = launch(engine, spec, self._settings, self._may_write)
        except StartError:
            raise
        except SinkError as error:
            raise StartError(str(error), fenced=isinstance(error, FencedError)) from error
        except Exception as error:
            raise StartError(describe(error)) from error
        query = SparkQuery(spec, launched, self._loop, self._stops)
        self._monitor.add(query)
        return query

    def _abandon(self, launching: asyncio.Future[SparkQuery]) -> None:
        if not launching.cancelled() and launching.exception() is None:
            task = self._loop.create_task(launching.result().stop(0))
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)

    def _on_death(self, how: str) -> None:
        """Called from the thread that watches Spark."""
        self._monitor.lose_all(how)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell_death, how)

    def _tell_death(self, how: str) -> None:
        if not self._died.done():
            log.error("spark is lost", how=how)
            self._died.set_result(how)
