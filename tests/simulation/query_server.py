"""A server of queries that outlives workers: what a dead one has left runs on, and others find and end it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReportRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.simulation.sink import Query, Sink
    from tests.simulation.whereabouts import Whereabouts
    from tests.simulation.workers import SimWorker
    from tests.simulation.world import World

BATCH_MS = 200


class QueryServer:
    """As Spark Connect: queries of tasks with a fence are found there by the names that sinks know."""

    def __init__(self, world: World, sink: Sink, whereabouts: Whereabouts) -> None:
        self._world = world
        self._sink = sink
        self._whereabouts = whereabouts
        self._left: dict[Query, str] = {}

    def leave(self, queries: Iterable[Query], who: str, for_ms: int) -> None:
        """Their worker is gone, and they run on for a while if nobody ends them."""
        for query in queries:
            self._left[query] = who
            self._run_on(query, self._world.now + for_ms)

    def _run_on(self, query: Query, until: int) -> None:
        if query not in self._left:
            return
        if self._world.now < until and self._sink.write(query, self._left[query]):
            self._world.after(BATCH_MS, partial(self._run_on, query, until))
        else:
            del self._left[query]

    def sweep(self, worker: SimWorker, workers: Iterable[SimWorker]) -> None:
        """A worker finds what runs under names of its group, and ends what its manager says is nobody's."""
        everybody = tuple(workers)
        running = [*self._left, *(query for each in everybody for query in each.fenced())]
        found = {
            query.home.task: query
            for query in sorted(running, key=lambda each: each.token)
            if query.home.group == worker.route.group
        }
        if found and worker.identity.member_id:
            request = ReportRequest(
                member_id=worker.identity.member_id,
                instance_id=worker.instance_id,
                tasks=(),
                found={name: query.token for name, query in found.items()},
            )
            worker.ask(request, partial(self._judged, found, everybody))

    def _judged(self, found: Mapping[str, Query], workers: Iterable[SimWorker], answer: Any) -> None:
        if isinstance(answer, Failure):
            return
        for name, query in found.items():
            if answer.found.get(name) == ErrorCode.STALE_TOKEN:
                self._whereabouts.check_ended(query)
                self._left.pop(query, None)
                for worker in workers:
                    worker.lose_query(query)
