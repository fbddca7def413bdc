"""What `sparkherd worker` and `sparkherd run` have in common: an engine, tasks, signals, figures, an end.

Exit codes: 0 asked to stop; 1 a bug; 2 it could not start (by `StartupError`); 3 another process carries its
instance id; 4 the engine (Spark) is lost, or was killed for a query that would not end; 5 the manager refuses
it for good; 128 + N a second signal N.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import structlog

from protocol.errors import StartupError
from worker.clock import SystemClock
from worker.membership.events import Reason
from worker.metrics.meter import Meter
from worker.query_engine import QueryError
from worker.resources import ResourceWatch
from worker.status import StatusHandlers, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.resources import WorkerResources
    from worker.background import BackgroundTasks
    from worker.membership.events import Quit
    from worker.metrics.meter import WorkerView
    from worker.query_engine import EngineDeath, QueryEngine
    from worker.settings import WorkerSettings
    from worker.spark.settings import SparkSettings
    from worker.tasks.runner import TaskRunner

log = structlog.get_logger(__name__)

EXIT_CODES: Final = {Reason.ASKED: 0, Reason.FENCED: 3, Reason.ENGINE_DIED: 4, Reason.REFUSED: 5}
DRAIN_MARGIN_S: Final = 5.0
"""How much longer than stopping the queries, letting go of them may take."""
REST_S: Final = 5.0
"""How long queries that were told to end at once may take before the engine is closed under them."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def spark_engine(
    settings: WorkerSettings, may_write: Callable[[], bool], inherited: Sequence[int] = ()
) -> QueryEngine:
    """The engine of a real worker: one Spark session, or one for each task with `--isolate`.

    The descriptors `inherited` stay open as long as any of its JVMs lives.

    Raises:
        StartupError: PySpark is not installed.
    """
    try:
        from worker.isolation.engine import IsolatedEngine  # noqa: PLC0415 - most of a worker needs no Spark
        from worker.spark.engine import SparkEngine  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise StartupError(f"Spark is not installed ({error}); pip install 'sparkherd[spark]'") from None
    spark = _spark_settings(settings, inherited)
    if settings.isolate:
        return IsolatedEngine(spark, may_write, settings.isolate_memory_mb)
    return SparkEngine(spark, may_write)


def _spark_settings(settings: WorkerSettings, inherited: Sequence[int]) -> SparkSettings:
    from worker.spark.settings import SparkSettings  # noqa: PLC0415 - as above

    return SparkSettings(
        app_name=f"sparkherd {settings.group} {settings.instance_id or settings.client_id}",
        master=settings.spark_master or "local[2]",
        remote=settings.spark_remote,
        conf=settings.spark_conf,
        packages=settings.packages,
        jars=settings.jars,
        repositories=settings.repositories,
        jvm_timeout_s=settings.jvm_timeout_ms / 1000,
        start_timeout_s=settings.start_timeout_ms / 1000,
        warm_up_s=settings.warm_up_s,
        checkpoint_root=settings.checkpoint_root,
        allow_entrypoint=settings.allow_entrypoint,
        allow_secret_env=settings.allow_secret_env,
        secrets_dir=settings.secrets_dir,
        allow_jdbc=settings.allow_jdbc,
        inherited=tuple(inherited),
    )


class Host(ABC):
    """Runs tasks in this process. Which ones, and when that is over, its subclasses say.

    `engine` and `tasks` are to be set when `run` is called.
    """

    engine: QueryEngine
    tasks: TaskRunner

    def __init__(self, settings: WorkerSettings, background: BackgroundTasks) -> None:
        self.meter = Meter(settings.group)
        self._settings = settings
        self._background = background
        self._resource_watch: ResourceWatch | None = None

    @property
    def resources(self) -> WorkerResources | None:
        """What it takes of its machine, as of the last look."""
        return None if self._resource_watch is None else self._resource_watch.seen

    @abstractmethod
    async def tell_resources(self, seen: WorkerResources) -> None:
        """Pass a look at what it takes on."""

    @abstractmethod
    def view(self) -> WorkerView:
        """What it is doing, for those who watch it."""

    @abstractmethod
    async def engine_is_up(self) -> None:
        """Tasks can run from now on."""

    @abstractmethod
    def engine_died(self, death: EngineDeath) -> None:
        """Nothing can run any more: have it end."""

    @abstractmethod
    def stop_asked(self, signal_name: str) -> None:
        """Have it end in order."""

    @abstractmethod
    async def before_rest(self, farewell: Quit) -> None:
        """It is over: what is to be done before all queries have to be at rest."""

    async def run(self, over: asyncio.Future[Quit], tell_status: Callable[[str], None]) -> Quit:
        """From the start of the engine to its end.

        Args:
            over: comes about when there is nothing left to do, and is returned.
            tell_status: is told the URL of the status endpoint, if there is one.

        Raises:
            StartupError: the engine cannot be had, or the endpoint's address.
        """
        handlers = StatusHandlers(self.view, self.meter.instruments)
        async with serving(self._settings.status_listen, handlers) as status_url:
            if status_url is not None:
                tell_status(status_url)
            return await self._run(over)

    async def _run(self, over: asyncio.Future[Quit]) -> Quit:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        self.meter.loop_lag.start()
        try:
            starting = self._background.spawn(self._start())
            farewell = await self._background.watch(over)
            starting.cancel()
            await self.before_rest(farewell)
            await self.tasks.come_to_rest(REST_S)
            return farewell
        finally:
            await self.engine.close()
            self.meter.loop_lag.stop()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def _start(self) -> None:
        try:
            await self.engine.open()
        except QueryError as error:
            raise StartupError(str(error)) from None
        gc.collect()  # of the cycles that the start has left, some hold objects of the JVM's
        gc.freeze()  # what was imported stays: looking through it again and again stops everything for 25 ms
        self._background.spawn(self._watch_engine())
        self._resource_watch = ResourceWatch(
            self.engine,
            self._settings.group,
            loop_lag=self.meter.loop_lag.worst,
            clock=SystemClock(),
            tell=self.tell_resources,
        )
        self._background.spawn(self._resource_watch.run())
        await self.engine_is_up()

    async def _watch_engine(self) -> None:
        self.engine_died(await self.engine.died())

    def _on_signal(self, number: int) -> None:
        """The first signal ends it in order, the second one at once."""
        for each in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(each, os._exit, 128 + each)
        self.stop_asked(signal.Signals(number).name)
