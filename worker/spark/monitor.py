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

from telemetry.scope import in_scope
from worker.executor import Ended

if TYPE_CHECKING:
    from worker.executor import QuerySpec

log = structlog.get_logger(__name__)

PERIOD_S = 0.1
SHARE = 5
"""With very many queries the pauses grow: at most one part in `SHARE` + 1 of the time goes into looking."""


class Watched(Protocol):
    """What the monitor asks of a query."""

    spec: QuerySpec

    def poll(self) -> bool:
        """Take in the news; True if the query is over."""
        ...

    def finish(self, ended: Ended) -> None:
        """The query is over without having said so itself."""
        ...


class Monitor:
    """Polls queries until each is over."""

    def __init__(self) -> None:
        self._losses: tuple[type[Exception], ...] = ()
        self._lock = threading.Lock()
        self._watched: dict[int, Watched] = {}
        self._lost: str | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=in_scope(self._run), name="query-monitor", daemon=True)

    def start(self, losses: tuple[type[Exception], ...]) -> None:
        """Begin; `losses` are the errors of calls to a Spark that is gone, which is told by `lose_all`."""
        self._losses = losses
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
        """End the thread; may be called from any other."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = PERIOD_S
        while not self._over.wait(pause):
            began = time.monotonic()
            for query in self.watched():
                self._look(query)
            pause = max(PERIOD_S, SHARE * (time.monotonic() - began))

    def _look(self, query: Watched) -> None:
        try:
            if query.poll():
                self._forget(query)
        except self._losses:
            return
        except Exception as error:
            log.exception("query cannot be watched", task=query.spec.task, token=query.spec.token)
            self._finish(query, f"the query cannot be watched any more: {error}")

    def _finish(self, query: Watched, cause: str) -> None:
        self._forget(query)
        query.finish(Ended(cause))

    def _forget(self, query: Watched) -> None:
        with self._lock:
            self._watched.pop(id(query), None)
