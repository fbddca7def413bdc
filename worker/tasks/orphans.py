"""Queries that nobody owns any more: which of them may be ended, and when a worker looks for them.

A killed worker's query is ended by the task's next owner. Where there is none, for the task was deleted or
nobody can have it, any worker of the group ends it. What may be ended is decided by tokens alone: one that
the manager calls stale never becomes the present one again, whatever is created, moved or restored
meanwhile. So it does not matter how old the two answers are that are held against each other here, and a
query whose token is higher than all that this manager has given out for the task is left alone: it is of
another manager's group of the same name, or was forgotten (docs/spark-clusters.md).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReportRequest
from worker.query_engine import QueryError
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from worker.query_engine import NotedQuery, QueryEngine
    from worker.tasks.exchange.manager_link import ManagerLink

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer")

MOST_AT_ONCE = 1000
"""Queries in one question to the manager."""


class OrphanedQueries:
    """The rule, without I/O: what has been found of queries, and since when their tokens are stale.

    Args:
        patience_s: how long an owner has that is alive, in seconds, to end a query of which it has just lost
            the token in order.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._stale_since: dict[NotedQuery, float] = {}
        self._ended: set[NotedQuery] = set()
        self._newer: dict[NotedQuery, NotedQuery] = {}

    @property
    def are_there(self) -> bool:
        """Whether some are still to be ended."""
        return bool(self._stale_since)

    def doubtful(self, noted: Iterable[NotedQuery]) -> tuple[NotedQuery, ...]:
        """Those of all that are noted down now of which the manager is to be asked."""
        there = tuple(noted)
        self._newer = {query: self._newer[query] for query in there if query in self._newer}
        present = tuple(self._newer.get(query, query) for query in there)
        self._ended.intersection_update(present)
        self._stale_since = {
            query: self._stale_since[query] for query in present if query in self._stale_since
        }
        return tuple(query for query in present if query not in self._ended)

    def due(self, stale: Sequence[NotedQuery], now: float) -> tuple[NotedQuery, ...]:
        """Those that are to be ended now: `stale` by the manager's word, and for long enough."""
        self._stale_since = {query: self._stale_since.get(query, now) for query in stale}
        return tuple(query for query, since in self._stale_since.items() if since + self._patience_s <= now)

    def is_under(self, query: NotedQuery, newer: NotedQuery) -> None:
        """It goes on under a newer token than was noted down of it: the manager is to be asked about that."""
        self._stale_since.pop(query, None)
        self._newer |= {noted: newer for noted, known in self._newer.items() if known == query}
        self._newer.setdefault(query, newer)

    def ended(self, query: NotedQuery) -> None:
        """It has been ended, or was over: it is not asked about again."""
        self._stale_since.pop(query, None)
        self._ended.add(query)


class OrphanSweep:
    """One look after each assignment, and more as long as something is left; never two in a short while.

    A deleted task, a lost owner and a worker that comes to a group without any all bring about an assignment.

    Args:
        link: to the manager.
        engine: what queries are found and ended by.
        group: whose tasks.
        patience_s: how long a live owner has to end its query, the time between two looks, and how long an
            answer of the engine is waited for, in seconds.
    """

    def __init__(self, link: ManagerLink, engine: QueryEngine, group: str, patience_s: float) -> None:
        self._link = link
        self._engine = engine
        self._group = group
        self._patience_s = patience_s
        self._orphans = OrphanedQueries(patience_s)
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
            if not await self._look() or self._orphans.are_there:
                self._wanted.set()
            await self._link.clock.sleep(self._patience_s)

    async def _look(self) -> bool:
        """Whether all of it could be done."""
        try:
            noted = await self._answer(None, lambda: self._engine.noted(self._group))
        except QueryError as error:
            _tell_of_waiting(error)
            return False
        stale = await self._stale(self._orphans.doubtful(noted))
        if stale is None:
            return False
        due = self._orphans.due(stale, self._link.clock.now())
        return all([await self._end(query) for query in due])

    async def _end(self, query: NotedQuery) -> bool:
        try:
            newer = await self._answer(query, lambda: self._engine.end_noted(query))
        except QueryError as error:
            _tell_of_waiting(error)
            return False
        if newer is not None:
            self._orphans.is_under(query, newer)
            return False
        self._orphans.ended(query)
        return True

    async def _answer(
        self, about: NotedQuery | None, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        """The engine's, to a question about one query or, with None, about all.

        One that is not answered in time is left to the thread that hangs in it, is not put again, and counts
        when its answer comes.

        Raises:
            QueryError: it cannot be answered, or has not been yet.
        """
        asked = self._asked.get(about)
        if asked is None:
            asked = self._asked[about] = asyncio.ensure_future(ask())
            await first(asyncio.wait({asked}), self._link.clock.sleep(self._patience_s))
        if not asked.done():
            raise QueryError("Spark has not answered yet")
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
        answer = await self._link.manager.report(
            ReportRequest(
                member_id=self._link.identity().member_id,
                instance_id=self._link.instance_id,
                tasks=(),
                found=found,
            )
        )
        if isinstance(answer, Failure):
            return answer
        return {} if answer.found is msgspec.UNSET else dict(answer.found)


def _tell_of_waiting(error: QueryError) -> None:
    log.info("ending what nobody owns has to wait", why=str(error).partition("\n")[0])
