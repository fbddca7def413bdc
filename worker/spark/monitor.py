"""One thread that looks after all queries of a worker.

Why polling: a StreamingQueryListener in Python is a call from Spark's listener bus into this process for
every event of every query; each waits for Python's lock, and a frozen worker would freeze the bus. Threads
that sit in `awaitTermination` are one of Python and one of Java a query. A look at a query takes 0.5 ms.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

import structlog

from telemetry.foreign_errors import FAILURES, first_line_of
from telemetry.scope import in_scope
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.query_engine import QuerySpec

log = structlog.get_logger(__name__)

PERIOD_S = 0.1
SHARE = 5
"""With many queries the pauses grow: one part in `SHARE` + 1 of the time goes into looking."""
LONGEST_PAUSE_S = 1.0
"""But no further than to what is reported once a second: a look may take long because Spark has stalled."""
CLOSE_TIMEOUT_S = 5.0
"""How long the end of the worker waits for a look that is under way."""


class Watched(Protocol):
    """What the monitor asks of a query."""

    spec: QuerySpec

    def poll(self) -> bool:
        """Take in the news; True if the query is over."""
        ...

    def give_up(self, cause: str) -> bool:
        """The query cannot be watched: end it; True if it is over, else a later `poll` says so."""
        ...

    def finish(self, ended: QueryError) -> None:
        """The query is over without having said so itself."""
        ...


class Monitor:
    """Polls queries until each is over."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """`now` is the clock that looks are timed by, in seconds."""
        self._now = now
        self._is_loss: Callable[[BaseException], bool] = lambda _error: False
        self._lock = threading.Lock()
        self._watched: dict[int, Watched] = {}
        self._lost: str | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=in_scope(self._run), name="query-monitor", daemon=True)

    def start(self, is_loss: Callable[[BaseException], bool]) -> None:
        """Begin; `is_loss` knows the errors of calls to a Spark that is gone, which is told by `lose_all`."""
        self._is_loss = is_loss
        self._thread.start()

    def add(self, query: Watched) -> None:
        """Look after one more."""
        with self._lock:
            self._watched[id(query)] = query
        if self._lost is not None:
            self._finish(query, self._lost)

    def watched(self) -> list[Watched]:
        """All that are not over."""
        with self._lock:
            return list(self._watched.values())

    def lose_all(self, cause: str) -> None:
        """Spark is gone: so are all queries, and those that were just being started."""
        self._lost = cause
        for query in self.watched():
            self._finish(query, cause)

    def close(self) -> None:
        """End the thread; may be called from any other.

        A look that hangs is waited for no longer than `CLOSE_TIMEOUT_S`: nobody wants to know any more what
        it finds, and its thread does not keep the process from ending.
        """
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            log.warning("a look at a query hangs, and is left behind", waited_s=CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        pause = PERIOD_S
        while not self._over.wait(pause):
            began = self._now()
            for query in self.watched():
                self._look(query)
            pause = min(max(PERIOD_S, SHARE * (self._now() - began)), LONGEST_PAUSE_S)

    def _look(self, query: Watched) -> None:
        try:
            is_over = query.poll()
        except FAILURES as error:
            if self._is_of_loss(error):
                return
            log.exception("query cannot be watched", task=query.spec.task, token=query.spec.token)
            is_over = query.give_up(f"the query cannot be watched any more: {first_line_of(error)}")
        if is_over:
            self._forget(query)

    def _is_of_loss(self, error: BaseException) -> bool:
        try:
            return self._is_loss(error)
        except FAILURES:  # it has a `__class__` of its own
            return False

    def _finish(self, query: Watched, cause: str) -> None:
        self._forget(query)
        query.finish(QueryError(cause))

    def _forget(self, query: Watched) -> None:
        with self._lock:
            self._watched.pop(id(query), None)
