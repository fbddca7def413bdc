"""A query in a process of its own, as the worker sees it (`worker.query_engine.Query`)."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import structlog

from worker.isolation.channel import Channel
from worker.isolation.framing import FrameError
from worker.isolation.lifecycle import (
    BEAT_S,
    Begun,
    IsUp,
    Kill,
    Lifecycle,
    Over,
    Send,
    Step,
)
from worker.isolation.memory import HEAP
from worker.isolation.messages import OfTask, Open, Run
from worker.isolation.process import TaskProcess
from worker.query_engine import QueryError, ignore_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from protocol.messages.resources import WorkerResources
    from worker.isolation.lifecycle import Effect
    from worker.query_engine import Progress, QuerySpec, Stall
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

CUT_S: Final = 5.0
"""How long a query may take to end that is cut; then its process is killed."""
EXIT_S: Final = 15.0
"""How long a process may take to let go of Spark after the end of its query."""
LAST_WORDS_S: Final = 1.0
"""How long it may take to read what a dead process has said."""


class IsolatedQuery:
    """One process and its query, from the start of the one to the end of both; for the event loop.

    `spec` is there when it was told to run. `process_over` comes about when nothing is left of the process.
    """

    spec: QuerySpec

    def __init__(
        self, task: str, process: TaskProcess, channel: Channel[OfTask], lifecycle: Lifecycle
    ) -> None:
        self.task = task
        self.process = process
        self.checkpoint: str | None = None
        self.committed: int | None = None
        self._channel = channel
        self._lifecycle = lifecycle
        self._at: Callable[[str], object] = ignore_step
        self._step: str | None = None
        loop = asyncio.get_running_loop()
        self._up: asyncio.Future[None] = loop.create_future()
        self._begun: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[QueryError | None] = loop.create_future()
        self.process_over = asyncio.ensure_future(self._live())

    @classmethod
    async def begin(
        cls,
        group: str,
        task: str,
        settings: SparkSettings,
        may_write: Callable[[], bool],
        begun: Callable[[TaskProcess], None],
    ) -> IsolatedQuery:
        """Start its process, which brings Spark up; `begun` is given it before anything else happens.

        Raises:
            QueryError: the machine has no room for it.
        """
        try:
            process, line = TaskProcess.begin(group, task, settings.inherited)
        except OSError as error:
            raise QueryError(f"no process for the task: {error.strerror}") from None
        begun(process)
        with ExitStack() as undoing:
            undoing.callback(process.kill)
            channel: Channel[OfTask] = await Channel.over(line, OfTask)
            undoing.callback(channel.close)
            channel.send(Open(settings, group, task))
            undoing.pop_all()
        lifecycle = Lifecycle(may_write, heap=settings.conf[HEAP], silence_limit_s=settings.jvm_timeout_s)
        return cls(task, process, channel, lifecycle)

    # What the worker asks.

    def progress(self) -> Progress | None:
        """The last finished batch that was told of."""
        return self._lifecycle.news.progress

    @property
    def has_work(self) -> bool:
        """As was told last."""
        return self._lifecycle.news.has_work

    @property
    def is_at_work(self) -> bool:
        """As was told last."""
        return self._lifecycle.news.is_at_work

    @property
    def trouble(self) -> str | None:
        """As was told last."""
        return self._lifecycle.news.trouble

    @property
    def stall(self) -> Stall | None:
        """As was told last."""
        return self._lifecycle.news.stall

    @property
    def heap_bytes(self) -> int | None:
        """As was told last, every ten seconds."""
        taken = self._lifecycle.resources
        return None if taken is None else taken.heap_live_bytes

    @property
    def kafka_requests(self) -> Mapping[tuple[str, bool], int]:
        """How often its Spark has asked brokers."""
        told = self._lifecycle.news.kafka_requests
        return {(each.purpose, each.answered): each.count for each in told}

    async def ended(self) -> QueryError | None:
        """Wait for the end."""
        return await asyncio.shield(self._ended)

    @property
    def can_be_left(self) -> bool:
        """Never: it ends with its process."""
        return False

    async def leave(self, within_s: float) -> bool:
        """Nobody asks for it."""
        raise NotImplementedError

    async def stop(self, timeout_s: float) -> None:
        """Let the batch in flight finish within `timeout_s` seconds, then cut it, then kill the process."""
        await self._bring_to_end(None, timeout_s)

    # What the engine asks.

    @property
    def resources(self) -> WorkerResources | None:
        """What its process has told last of what its Spark takes."""
        return self._lifecycle.resources

    @property
    def is_over(self) -> bool:
        """Whether nothing of the query runs any more, be it that it was never started."""
        return self._ended.done()

    async def abort(self, cause: str) -> None:
        """End the query at once, which is a failure, and wait until nothing is left of its process."""
        await self._bring_to_end(QueryError(cause), 0)
        await asyncio.shield(self.process_over)

    @property
    def is_coming_up(self) -> bool:
        """Whether its Spark is on the way."""
        return not self._up.done() and not self.is_over

    async def until_up(self, within_s: float, at: Callable[[str], object]) -> None:
        """Wait until its Spark has come up, or has failed to, which `until_begun` tells.

        `at` is told what is waited for, from now on until the query runs.

        Raises:
            QueryError: it takes too long.
        """
        self._at = at
        if self._step is not None:
            at(self._step)
        futures: Iterable[asyncio.Future[object]] = (self._up, self._ended)  # type: ignore[assignment]
        await asyncio.wait(futures, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if not self._up.done() and not self._ended.done():
            raise QueryError(
                f"the start was given up after {within_s:g} s (--start-timeout-ms): it was waiting for Spark,"
                " in a JVM of its own"
            )

    def run(self, spec: QuerySpec) -> None:
        """Have it run this query; to be called once, when its Spark is up."""
        self.spec = spec
        if not self.is_over:
            self._channel.send(Run.of(spec))

    async def until_begun(self) -> None:
        """Wait until the query runs.

        Raises:
            QueryError: it cannot be started.
        """
        futures: Iterable[asyncio.Future[object]] = (self._begun, self._ended)  # type: ignore[assignment]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if not self._begun.done():
            raise self._ended.result() or QueryError("the query was stopped before it was started")

    async def discard(self) -> None:
        """Kill the process, whatever it is doing, and wait until nothing is left of it."""
        self.process.kill()
        await asyncio.shield(self.process_over)

    # What it does.

    async def _bring_to_end(self, end: QueryError | None, timeout_s: float) -> None:
        self._act(self._lifecycle.stop(timeout_s, end))
        await asyncio.wait({self._ended}, timeout=timeout_s + CUT_S)
        if not self._ended.done():
            log.warning("a query did not end in time: its process is killed", task=self.task)
            self.process.kill()
            await asyncio.shield(self._ended)

    async def _live(self) -> None:
        """What it said last is still on the line when it is dead."""
        listening = asyncio.ensure_future(self._listen())
        looking = asyncio.ensure_future(self._look())
        await self._until_over()
        exit_ = await self.process.exited
        looking.cancel()
        await asyncio.wait({listening}, timeout=LAST_WORDS_S)
        listening.cancel()
        self._act(self._lifecycle.exited(exit_))
        self._channel.close()

    async def _until_over(self) -> None:
        """Of the query, and soon after it of the process."""
        futures: Iterable[asyncio.Future[object]] = (self.process.exited, self._ended)  # type: ignore[assignment]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({self.process.exited}, timeout=EXIT_S)
        self.process.kill()

    async def _listen(self) -> None:
        try:
            async for message in self._channel.messages():
                self._act(self._lifecycle.received(message))
        except FrameError as error:
            log.error(  # noqa: TRY400 - what it has said is not worth a trace
                "the process of a task cannot be understood", task=self.task, error=str(error)
            )
            self.process.kill()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            self._act(self._lifecycle.look())

    def _act(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(message):
                self._channel.send(message)
            case Step(step):
                self._step = step
                self._at(step)
            case IsUp():
                self._up.set_result(None)
            case Begun(checkpoint, committed):
                self.checkpoint, self.committed = checkpoint, committed
                self._begun.set_result(None)
            case Over(error):
                self._ended.set_result(error)
            case Kill():
                self.process.kill()
