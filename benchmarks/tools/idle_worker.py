"""A real worker whose engine runs nothing: it prints when it is about to join and when each task starts."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import TYPE_CHECKING

import structlog

from protocol.messages.checks import CheckResult
from worker.daemon import run
from worker.query_engine import NoQuarantineError, Progress, Query, QueryEngine, QueryError, ignore_step
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from worker.query_engine import CheckSpec, EngineDeath, NotedQuery, Prepared, QuerySpec, UpcomingQuery


class IdleQuery(Query):
    """Runs until it is stopped, and does nothing."""

    has_work = is_at_work = can_be_left = False
    checkpoint = None
    committed = None
    trouble = stall = heap_bytes = None

    def __init__(self, spec: QuerySpec) -> None:
        self.spec = spec
        self._ended: asyncio.Future[QueryError | None] = asyncio.get_running_loop().create_future()

    def progress(self) -> Progress | None:
        """No batch ever."""
        return None

    async def ended(self) -> QueryError | None:
        """When it was stopped."""
        return await asyncio.shield(self._ended)

    async def leave(self, within_s: float) -> bool:
        """Nobody asks for it."""
        raise NotImplementedError

    async def stop(self, timeout_s: float) -> None:  # noqa: ARG002 - the interface's
        """At once."""
        if not self._ended.done():
            self._ended.set_result(None)


class IdleEngine(QueryEngine):
    """Starts idle queries and says when, on the clock that all processes of a machine share."""

    @property
    def measures(self) -> bool:
        """Nothing is read."""
        return False

    @property
    def kafka_requests(self) -> dict[tuple[str, bool], int]:
        """Nobody is asked."""
        return {}

    async def resources(self, group: str | None) -> None:
        """It takes none."""
        del group

    async def lag(self, spec: QuerySpec) -> None:
        """Of nothing."""
        del spec

    @property
    def spark(self) -> None:
        """There is none."""

    @property
    def url(self) -> str | None:
        """There is nothing to look at."""
        return None

    async def open(self) -> None:
        """From now on the worker joins."""
        say("joining", "-")

    async def died(self) -> EngineDeath:
        """Never."""
        never: asyncio.Future[EngineDeath] = asyncio.get_running_loop().create_future()
        return await never

    @property
    def prepares(self) -> int:
        """There is nothing to make ready."""
        return 0

    async def prepare(self, query: UpcomingQuery) -> None:
        """Nothing."""
        del query

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> Query:
        """At once."""
        del at, prepared
        say("started", spec.task)
        return IdleQuery(spec)

    async def settle(self, spec: QuerySpec, at: Callable[[str], object] = ignore_step) -> None:
        """Nobody writes anything."""

    async def check(self, spec: CheckSpec, at: Callable[[str], object] = ignore_step) -> CheckResult:
        """There is nothing to say."""
        del spec, at
        return CheckResult()

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """No row was ever put aside."""
        del request, at
        raise NoQuarantineError(f"task {spec.task} puts no rows aside")

    async def noted(self, group: str) -> Sequence[NotedQuery]:
        """None outlives this process."""
        del group
        return ()

    async def end_noted(self, query: NotedQuery) -> None:
        """There is none."""

    def kill(self) -> bool:
        """Nothing writes."""
        return True

    async def close(self) -> None:
        """Nothing to close."""


def say(event: str, task: str) -> None:
    """One line for whoever measures."""
    sys.stdout.write(f"{event} {task} {time.monotonic()}\n")
    sys.stdout.flush()


def make(_: WorkerSettings, __: Callable[[], bool]) -> QueryEngine:
    """The engine of one worker."""
    return IdleEngine()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    settings = WorkerSettings(manager=(sys.argv[1],), group="bench", client_id=sys.argv[2])
    sys.exit(asyncio.run(run(settings, make, lambda _: None)))
