"""Running the tasks of one file in this process, until there is nothing left to do or a signal comes.

Exit codes are those of a worker (`worker.daemon`); 1 also when a task is FAILED at the end.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
from typing import TYPE_CHECKING, Final

import structlog

from protocol.errors import StartupError
from telemetry.scope import open_scope
from worker.background import BackgroundTasks
from worker.clock import SystemClock, wall_ms
from worker.daemon import DRAIN_MARGIN_S, EXIT_CODES, REST_S, spark_executor
from worker.executor import QueryError
from worker.membership.effects import Identity, Reason
from worker.membership.states import MemberState
from worker.metrics.meter import Meter
from worker.metrics.reader import WorkerReader, WorkerView
from worker.secrets import Secrets
from worker.sinks.factory import newest_fence
from worker.sinks.marks import Owner
from worker.standalone.checkpoints import require_checkpoint
from worker.standalone.local_manager import LocalManager, LocalTask, has_failed, is_over
from worker.standalone.token_file import TokenFile, place_of
from worker.status.handlers import StatusHandlers
from worker.status.server import serving
from worker.tasks.runner import TaskRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.executor import Executor
    from worker.membership.events import Refused
    from worker.settings import WorkerSettings
    from worker.sinks.fence import FenceRow

    MakeExecutor = Callable[[WorkerSettings, Callable[[], bool], Sequence[int]], Executor]

log = structlog.get_logger(__name__)

ALONE: Final = Identity("standalone", 1)
FOR_GOOD_S: Final = math.inf
"""Nobody gives a task of this run to others, so there is no time after which it could be theirs. Another run
would be told the same by its own stand-in: what keeps that one away is the lock of `tokens`, not time. The
JVM has it, too."""
TASK_FAILED: Final = 1
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run_alone(
    settings: WorkerSettings,
    tasks: Sequence[LocalTask],
    *,
    once: bool,
    show: Callable[[LocalManager], None],
    make_executor: MakeExecutor = spark_executor,
    now_ms: Callable[[], int] = wall_ms,
) -> int:
    """Run the tasks; returns the exit code.

    Args:
        settings: the worker's; those of its membership have no meaning here.
        tasks: what to run.
        once: end when the bounded tasks are at their end, whatever the others do.
        show: is called whenever a task has something to tell.
        make_executor: makes the engine.
        now_ms: the wall clock, in milliseconds since 1970.

    Raises:
        StartupError: it cannot start; one line that names what to change.
    """
    open_scope(group=settings.group)
    with TokenFile(place_of(settings.checkpoint_root, settings.group), now_ms) as tokens:
        async with BackgroundTasks() as background:
            alone = Standalone(
                settings,
                tasks,
                once=once,
                tokens=tokens,
                background=background,
                show=show,
                make_executor=make_executor,
            )
            handlers = StatusHandlers(alone.view, alone.meter.instruments)
            async with serving(settings.status_listen, handlers) as status_url:
                if status_url is not None:
                    log.info("status is served", url=status_url)
                return await alone.work()


class Standalone:
    """A worker's parts, without a membership."""

    def __init__(
        self,
        settings: WorkerSettings,
        tasks: Sequence[LocalTask],
        *,
        once: bool,
        tokens: TokenFile,
        background: BackgroundTasks,
        show: Callable[[LocalManager], None],
        make_executor: MakeExecutor,
    ) -> None:
        self._settings = settings
        self._secrets = Secrets(settings.allow_secret_env, settings.secrets_dir)
        self._tasks = tasks
        self._once = once
        self._background = background
        self._show = show
        self.meter = Meter(settings.group)
        self.meter.instruments.read_at_scrape(WorkerReader(self.view))
        self._over: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()
        self._executor = make_executor(settings, lambda: True, (tokens.descriptor,))
        self._manager = LocalManager(tasks, tokens=tokens, look=self._fence_of, changed=self._on_change)
        self._runner = TaskRunner(
            settings,
            manager=self._manager,
            executor=self._executor,
            clock=SystemClock(),
            chance=random.random,
            spawn=background.spawn,
            trouble=_on_refused,
            fenced=self.meter.fenced,
            token_lease_s=FOR_GOOD_S,
        )

    def view(self) -> WorkerView:
        """What it is doing, for those who watch it; its lease is on nobody's word and never runs out."""
        return WorkerView(
            group=self._settings.group,
            member_id=ALONE.member_id,
            generation=ALONE.generation,
            state=MemberState.STABLE,
            lease_s=FOR_GOOD_S,
            tasks=self._runner.views(),
        )

    async def work(self) -> int:
        """Run everything from the start of the engine to its end; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        self.meter.loop_lag.start()
        try:
            starting = self._background.spawn(self._start())
            reason = await self._background.watch(self._over)
            starting.cancel()
            await self._stop(reason)
            failed = has_failed(self._manager.states)
            return EXIT_CODES[reason] or (TASK_FAILED if failed else 0)
        finally:
            self._manager.close()
            await self._executor.close()
            self.meter.loop_lag.stop()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def _start(self) -> None:
        try:
            await self._executor.open()
        except QueryError as error:
            raise StartupError(str(error)) from None
        self._background.spawn(self._watch_engine())
        self._runner.adopt(ALONE, frozenset(task.name for task in self._tasks))
        self._on_change()

    async def _watch_engine(self) -> None:
        log.error("the engine died", how=(await self._executor.died()).how)
        self._end(Reason.ENGINE_DIED)

    async def _stop(self, reason: Reason) -> None:
        """Let batches in flight finish; of a dead engine there is nothing to wait for."""
        if reason is Reason.ENGINE_DIED:
            self._runner.lose("the engine died")
        else:
            await self._runner.let_go(self._settings.stop_timeout_ms / 1000 + DRAIN_MARGIN_S)
        await self._runner.come_to_rest(REST_S)

    def _fence_of(self, task: LocalTask) -> FenceRow | None:
        """Called in a thread."""
        if task.definition.sink is None:
            return None
        row = newest_fence(
            self._secrets.resolve_sink(task.definition.sink), Owner(self._settings.group, task.name, 0)
        )
        if row is not None:
            require_checkpoint(self._settings.checkpoint_root, self._settings.group, task.name, row)
        return row

    def _on_change(self) -> None:
        self._show(self._manager)
        if is_over(self._tasks, self._manager.states, once=self._once):
            self._end(Reason.ASKED)

    def _on_signal(self, number: int) -> None:
        """The first signal ends the run in order, the second one at once."""
        for each in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(each, os._exit, 128 + each)
        log.info("stopping", why=signal.Signals(number).name)
        self._end(Reason.ASKED)

    def _end(self, reason: Reason) -> None:
        if not self._over.done():
            self._over.set_result(reason)


def _on_refused(refused: Refused) -> None:
    """The stand-in refuses nothing, so this is a bug; it ends the run."""
    raise AssertionError(f"refused: {refused}")
