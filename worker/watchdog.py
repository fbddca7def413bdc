"""The last resort: what writes without a fence is over in time, even if it takes the whole process for that.

A query is stopped by asking Spark, which may be slow, or hang. Past the time when the manager gives the task
to others, only the fence in a sink would tell the two drivers apart; where there is none, the worker ends its
JVM and itself, for what has been killed writes no more (docs/exactly-once.md, Without a fence).
"""

from __future__ import annotations

import threading
from concurrent.futures import wait
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

log = structlog.get_logger(__name__)

SAY_S: Final = 0.1
"""How long a line may take to be logged: whoever reads the log may have stopped to, and its pipe be full."""
CLOSE_TIMEOUT_S = 1.0
"""How long the end of the worker waits for the watchdog's thread."""
LOOK_S = 0.25
"""A machine that was suspended finds out no later than this after it: waits do not count that time."""


class Work(Protocol):
    """Something that may write under a token that has to be confirmed; both are read from another thread."""

    task: str
    confirmed_at: float
    """When the last request was sent, by the worker's clock, whose answer has confirmed the token."""


def unwatched(_work: Work) -> AbstractContextManager[None]:
    """For where there is nobody else who could be given the task."""
    return nullcontext()


class Watchdog:
    """Looks after the work that has no fence, in a thread of its own: the event loop may hang, too.

    Args:
        now: the worker's clock, in seconds.
        limit_s: how long after its confirmation work has to be over.
        act: is called from the thread with the tasks that are not over by then.
    """

    def __init__(
        self, now: Callable[[], float], limit_s: float, act: Callable[[tuple[str, ...]], None]
    ) -> None:
        self._now = now
        self._limit_s = limit_s
        self._act = act
        self._changed = threading.Condition()
        self._works: list[Work] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    @contextmanager
    def watching(self, work: Work) -> Iterator[None]:
        """From here to the end of the block it may write."""
        with self._changed:
            self._works.append(work)
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                if work in self._works:
                    self._works.remove(work)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def close(self) -> None:
        """Nothing can write any more: end the thread, or leave it behind if it hangs."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def overdue(self) -> tuple[str, ...]:
        """The tasks that should be over and are not, each once; they are looked after no longer."""
        with self._changed:
            late = [work for work in self._works if work.confirmed_at + self._limit_s <= self._now()]
            self._works = [work for work in self._works if work not in late]
        return tuple(work.task for work in late)

    def _run(self) -> None:
        while not self._is_over:
            if late := self.overdue():
                self._act(late)
            with self._changed:
                if not self._is_over:
                    self._changed.wait(self._pause_s())

    def _pause_s(self) -> float | None:
        earliest = min((work.confirmed_at for work in self._works), default=None)
        if earliest is None:
            return None
        return max(0.0, min(earliest + self._limit_s - self._now(), LOOK_S))


def end_at_once(
    tasks: tuple[str, ...], kill: Callable[[], bool], end_process: Callable[[], object], **told: Any
) -> None:
    """Have what may not write any more write no more; called from the watchdog's thread.

    Whatever happens on the way, the process ends: also if nothing can be logged, or the engine not be killed.

    Args:
        tasks: whose queries are not over.
        kill: ends the engine; False if it is not the worker's own. Then the process goes on.
        end_process: ends the process.
        told: what else the log is to have.
    """
    is_own = True
    try:
        is_own = kill()
        if is_own:
            _say("queries without a fence were not over in time: the worker ends itself", tasks, told)
        else:
            _say("queries without a fence are not over in time, and may write beside others", tasks, told)
    finally:
        if is_own:
            end_process()


def _say(what: str, tasks: tuple[str, ...], told: dict[str, Any]) -> None:
    """Log it, or leave it to a thread that hangs in it."""
    wait([in_thread("watchdog-log", partial(log.critical, what, tasks=tasks, **told))], SAY_S)
