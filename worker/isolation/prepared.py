"""A process whose Spark comes up before its task is granted (`worker.query_engine.Prepared`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from worker.isolation.query import IsolatedQuery

UNUSED: Final = "its task was not granted to this worker"


class PreparedProcess:
    """Knows the settings of its Spark and the name of its task, and nothing of what may be run in it."""

    def __init__(self, query: IsolatedQuery) -> None:
        self.query = query
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_stale(self) -> bool:
        """Never: another process would fail for the same reason, which the start of the task tells."""
        return False

    def discard(self) -> None:
        """Have it end in order, so that Spark takes its files away."""
        self._ending = asyncio.create_task(self.query.abort(UNUSED))
