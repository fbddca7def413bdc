"""Looks for queries that nobody owns any more, and ends them (`worker.keeper.leftovers` has the rule)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReportRequest
from worker.executor import StartError
from worker.keeper.leftovers import Leftovers
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from worker.executor import Executor, NotedQuery
    from worker.keeper.manager import Line

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer")

MOST_AT_ONCE = 1000
"""Queries in one question to the manager."""


class Sweep:
    """One look after each assignment, and more as long as something is left; never two in a short while.

    A deleted task, a lost owner and a worker that comes to a group without any all bring about an assignment.

    Args:
        line: to the manager.
        executor: what queries are found and ended by.
        group: whose tasks.
        patience_s: how long a live owner has to end its query, the time between two looks, and how long an
            answer of the engine is waited for, in seconds.
    """

    def __init__(self, line: Line, executor: Executor, group: str, patience_s: float) -> None:
        self._line = line
        self._executor = executor
        self._group = group
        self._patience_s = patience_s
        self._leftovers = Leftovers(patience_s)
        self._wanted = asyncio.Event()
        self._asked: dict[NotedQuery | None, asyncio.Future[Any]] = {}

    def wake(self) -> None:
        """Something may have been left."""
        self._wanted.set()

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not await self._look() or self._leftovers.are_there:
                self._wanted.set()
            await self._line.clock.sleep(self._patience_s)

    async def _look(self) -> bool:
        """Whether all of it could be done."""
        try:
            noted = await self._answer(None, lambda: self._executor.noted(self._group))
        except StartError as error:
            _tell_of_waiting(error)
            return False
        stale = await self._stale(self._leftovers.doubtful(noted))
        if stale is None:
            return False
        due = self._leftovers.due(stale, self._line.clock.now())
        return all([await self._end(query) for query in due])

    async def _end(self, query: NotedQuery) -> bool:
        try:
            await self._answer(query, lambda: self._executor.end_noted(query))
        except StartError as error:
            _tell_of_waiting(error)
            return False
        self._leftovers.ended(query)
        return True

    async def _answer(
        self, about: NotedQuery | None, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        """The engine's, to a question about one query or, with None, about all.

        One that is not answered in time is left to the thread that hangs in it, is not put again, and counts
        when its answer comes.

        Raises:
            StartError: it cannot be answered, or has not been yet.
        """
        asked = self._asked.get(about)
        if asked is None:
            asked = self._asked[about] = asyncio.ensure_future(ask())
            await first(asyncio.wait({asked}), self._line.clock.sleep(self._patience_s))
        if not asked.done():
            raise StartError("Spark has not answered yet")
        del self._asked[about]
        answer: Answer = asked.result()
        return answer

    async def _stale(self, queries: Sequence[NotedQuery]) -> tuple[NotedQuery, ...] | None:
        """Those whose tokens are stale, by the manager's word; None if it has not given it."""
        stale: list[NotedQuery] = []
        for start in range(0, len(queries), MOST_AT_ONCE):
            some = queries[start : start + MOST_AT_ONCE]
            answer = await self._ask({query.task: query.token for query in some})
            if isinstance(answer, Failure):
                return None
            stale += [query for query in some if answer.get(query.task) == ErrorCode.STALE_TOKEN]
        return tuple(stale)

    async def _ask(self, found: dict[str, int]) -> dict[str, str] | Failure:
        """A former manager does not answer to this, and so everything is left as it is."""
        answer = await self._line.manager.report(
            ReportRequest(
                member_id=self._line.identity().member_id,
                instance_id=self._line.instance_id,
                tasks=(),
                found=found,
            )
        )
        if isinstance(answer, Failure):
            return answer
        return {} if answer.found is msgspec.UNSET else dict(answer.found)


def _tell_of_waiting(error: StartError) -> None:
    log.info("ending what nobody owns has to wait", why=str(error).partition("\n")[0])
