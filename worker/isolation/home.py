"""The worker's own Spark beside those of its tasks: it answers questions, and runs no query.

Checks and requests about rows run code of tasks in it, so it may die; then it is opened again, and whoever
asks meanwhile is told that it is not running.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from telemetry.cause_ids import new_cause_id
from worker.clock import SystemClock
from worker.query_engine import QueryError
from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker.clock import Clock
    from worker.query_engine import QueryEngine, SparkKind

log = structlog.get_logger(__name__)

AGAIN: Final = Backoff(first_s=1.0, limit_s=60.0)
"""Between tries to open it."""


class HomeSpark:
    """Keeps one engine open; `engine` is the present one."""

    def __init__(self, make: Callable[[], QueryEngine], clock: Clock | None = None) -> None:
        """`make` makes an engine that is not open; `clock` is the machine's unless another is given."""
        self.engine = make()
        self._make = make
        self._clock = clock or SystemClock()
        self._kind: SparkKind | None = None
        self._asked_before: Counter[tuple[str, bool]] = Counter()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Bring it up, and see to it from now on that it is.

        Raises:
            QueryError: that is impossible; says what to change.
        """
        await self.engine.open()
        self._kind = self.engine.spark
        self._keeping = asyncio.create_task(self._keep())

    @property
    def kind(self) -> SparkKind | None:
        """Which Spark it is, or was when it was up last."""
        return self._kind

    @property
    def kafka_requests(self) -> Mapping[tuple[str, bool], int]:
        """Of all that there were."""
        return self._asked_before + Counter(self.engine.kafka_requests)

    def kill(self) -> None:
        """End it, in milliseconds; for any thread."""
        self.engine.kill()

    async def close(self) -> None:
        """Let go of it."""
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        await self.engine.close()

    async def _keep(self) -> None:
        """One that dies soon after it has come up has failed, too: it would take a processor for good."""
        tries = 0
        while True:
            up_at = self._clock.now()
            death = await self.engine.died()
            log.warning("the worker's own spark is lost, its tasks go on", how=death.how)
            if self._clock.now() - up_at >= AGAIN.limit_s:
                tries = 0
            self._asked_before += Counter(self.engine.kafka_requests)
            await self._let_go(self.engine)
            self.engine, tries = await self._opened(tries)

    async def _opened(self, tries: int) -> tuple[QueryEngine, int]:
        """Another one after `tries` that have failed, and how many there are with it."""
        while True:
            if tries:
                await self._clock.sleep(AGAIN.delay_s(tries - 1, random.random()))  # noqa: S311 - for jitter
            tries += 1
            if (engine := await self._try()) is not None:
                return engine, tries

    async def _try(self) -> QueryEngine | None:
        engine = self._make()
        try:
            await engine.open()
        except QueryError as error:
            log.warning("the worker's own spark does not come up", cause=error.cause)
        except Exception:  # a machine without room for a thread, say, has room again later
            log.exception("bug: the worker's own spark does not come up", cause_id=new_cause_id())
        else:
            return engine
        await self._let_go(engine)
        return None

    async def _let_go(self, engine: QueryEngine) -> None:
        try:
            await engine.close()
        except Exception:  # likewise
            log.exception("bug: the worker's own spark cannot be closed", cause_id=new_cause_id())
