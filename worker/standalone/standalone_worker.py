"""Running the tasks of one file in this process, until there is nothing left to do or a signal comes.

Exit codes are those of a worker (`worker.host`); 1 also when a task is FAILED at the end.
"""

from __future__ import annotations

import asyncio
import math
import random
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from telemetry.scope import open_scope
from worker.background import BackgroundTasks
from worker.clock import SystemClock, wall_ms
from worker.host import DRAIN_MARGIN_S, EXIT_CODES, Host, spark_engine
from worker.membership.events import Identity, Quit, Reason
from worker.membership.states import MemberState
from worker.metrics.meter import WorkerView
from worker.standalone.local_manager import LocalManager, LocalTask, fence_of, has_failed, is_over
from worker.standalone.token_file import TokenFile, place_of
from worker.tasks.runner import TaskRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.resources import WorkerResources
    from worker.membership.events import Refused
    from worker.query_engine import EngineDeath, QueryEngine
    from worker.settings import WorkerSettings

    MakeEngine = Callable[[WorkerSettings, Callable[[], bool], Sequence[int]], QueryEngine]

log = structlog.get_logger(__name__)

ALONE: Final = Identity("standalone", 1)
FOR_GOOD_S: Final = math.inf
"""Nobody gives a task of this run to others, so there is no time after which it could be theirs. Another run
would be told the same by its own stand-in: what keeps that one away is the lock of `tokens`, not time. The
JVM has it, too."""
TASK_FAILED: Final = 1


async def run_alone(
    settings: WorkerSettings,
    tasks: Sequence[LocalTask],
    *,
    once: bool,
    show: Callable[[LocalManager], None],
    make_engine: MakeEngine = spark_engine,
    now_ms: Callable[[], int] = wall_ms,
) -> int:
    """Run the tasks; returns the exit code.

    Args:
        settings: the worker's; those of its membership have no meaning here.
        tasks: what to run.
        once: end when the bounded tasks are at their end, whatever the others do.
        show: is called whenever a task has something to tell.
        make_engine: makes the engine.
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
                make_engine=make_engine,
            )
            return await alone.work()


class Standalone(Host):
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
        make_engine: MakeEngine,
    ) -> None:
        super().__init__(settings, background)
        self._local_tasks = tasks
        self._once = once
        self._show = show
        self._over: asyncio.Future[Quit] = asyncio.get_running_loop().create_future()
        cold = msgspec.structs.replace(settings, warm_up_timeout_ms=0)  # nobody runs the tasks meanwhile
        self.engine = make_engine(cold, lambda: True, (tokens.descriptor,))
        clock = SystemClock()
        self._manager = LocalManager(
            tasks, tokens=tokens, look=partial(fence_of, settings), changed=self._on_change, clock=clock
        )
        self.tasks = TaskRunner(
            settings,
            manager=self._manager,
            engine=self.engine,
            clock=clock,
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
            tasks=self.tasks.views(),
            kafka_requests=self.engine.kafka_requests,
            resources=self.resources,
        )

    async def work(self) -> int:
        """Run everything from the start of the engine to its end; returns the exit code."""
        try:
            farewell = await self.run(self._over, lambda url: log.info("status is served", url=url))
            return EXIT_CODES[farewell.reason] or (TASK_FAILED if has_failed(self._manager.states) else 0)
        finally:
            self._manager.close()

    async def engine_is_up(self) -> None:
        """Run all tasks of the file."""
        self.tasks.adopt(ALONE, frozenset(task.name for task in self._local_tasks))
        self._on_change()

    def engine_died(self, death: EngineDeath) -> None:
        """There is nobody who could go on with the tasks."""
        log.error("the engine died", how=death.how)
        self._end(Reason.ENGINE_DIED)

    async def tell_resources(self, seen: WorkerResources) -> None:
        """Who is alone has nobody to tell."""

    def stop_asked(self, signal_name: str) -> None:
        """Whatever runs."""
        log.info("stopping", why=signal_name)
        self._end(Reason.ASKED)

    async def before_rest(self, farewell: Quit) -> None:
        """Let batches in flight finish; of a dead engine there is nothing to wait for."""
        if farewell.reason is Reason.ENGINE_DIED:
            self.tasks.lose("the engine died")
        else:
            await self.tasks.let_go(self._settings.stop_timeout_ms / 1000 + DRAIN_MARGIN_S)

    def _on_change(self) -> None:
        self._show(self._manager)
        if is_over(self._local_tasks, self._manager.states, once=self._once):
            self._end(Reason.ASKED)

    def _end(self, reason: Reason) -> None:
        if not self._over.done():
            self._over.set_result(Quit(reason, ""))


def _on_refused(refused: Refused) -> None:
    """The stand-in refuses nothing, so this is a bug; it ends the run."""
    raise AssertionError(f"refused: {refused}")
