"""The rule by which queries that nobody owns any more are ended, where queries outlive their workers.

A killed worker's query is ended by the task's next owner. Where there is none, for the task was deleted or
nobody can have it, any worker of the group ends it. What may be ended is decided by tokens alone: one that
the manager calls stale never becomes the present one again, whatever is created, moved or restored
meanwhile. So it does not matter how old the two answers are that are held against each other here, and a
query whose token is higher than all that this manager has given out for the task is left alone: it is of
another manager's group of the same name, or was forgotten (docs/spark-clusters.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker.executor import NotedQuery


class Leftovers:
    """What has been found of queries, and since when their tokens are stale.

    Args:
        patience_s: how long an owner has that is alive, in seconds, to end a query of which it has just lost
            the token in order.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._stale_since: dict[NotedQuery, float] = {}
        self._ended: set[NotedQuery] = set()

    @property
    def are_there(self) -> bool:
        """Whether some are still to be ended."""
        return bool(self._stale_since)

    def doubtful(self, noted: Iterable[NotedQuery]) -> tuple[NotedQuery, ...]:
        """Those of all that are noted down now of which the manager is to be asked."""
        present = tuple(noted)
        self._ended.intersection_update(present)
        self._stale_since = {
            query: self._stale_since[query] for query in present if query in self._stale_since
        }
        return tuple(query for query in present if query not in self._ended)

    def due(self, stale: Sequence[NotedQuery], now: float) -> tuple[NotedQuery, ...]:
        """Those that are to be ended now: `stale` by the manager's word, and for long enough."""
        self._stale_since = {query: self._stale_since.get(query, now) for query in stale}
        return tuple(query for query, since in self._stale_since.items() if since + self._patience_s <= now)

    def ended(self, query: NotedQuery) -> None:
        """It has been ended, or was over: it is not asked about again."""
        self._stale_since.pop(query, None)
        self._ended.add(query)
