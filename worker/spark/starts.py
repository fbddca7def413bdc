"""Starts of queries, each in a thread of its own: one that hangs is in nobody's way, and given up some day.

A start waits for databases, file systems and code that are not ours. How many are under way at once is
bounded to spare the machine; one that takes long is waiting for something, and needs no sparing.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

from worker.query_engine import QueryError
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Result = TypeVar("Result")

AT_ONCE = 8
"""Starts that have their turn at the same time."""
TURN_S = 5.0
"""How long a turn lasts: a start goes on after it, but another one may begin."""


class StartSteps:
    """What one start comes to in its thread: what it waits for, and whether it may still go on."""

    def __init__(self, tell: Callable[[str], object], what: str = "the start") -> None:
        """`tell` is called in the thread with each step that it comes to; `what` names all of it."""
        self.what = what
        self.step = "a thread"
        self._tell = tell
        self._lock = threading.Lock()
        self._is_given_up = False
        self._is_begun = False

    def at(self, step: str) -> None:
        """The start comes to `step`, a noun for what it may have to wait for.

        Raises:
            QueryError: it was given up meanwhile.
        """
        with self._lock:
            self._require_interest()
            self.step = step
        self._tell(step)

    def begin(self) -> None:
        """Spark is asked to run the query now: whatever comes of that, it cannot be called back.

        Raises:
            QueryError: the start was given up meanwhile.
        """
        with self._lock:
            self._require_interest()
            self._is_begun = True

    def give_up(self) -> bool:
        """Let it go no further; whether that is sure, because no query was begun."""
        with self._lock:
            self._is_given_up = True
            return not self._is_begun

    def _require_interest(self) -> None:
        if self._is_given_up:
            raise QueryError(f"{self.what} was given up")


class Starts:
    """Runs starts, from one event loop.

    A start that was given up may go on in its thread, as far as its next step. Until that is over, no other
    one of its task begins: Spark would take whichever query comes later for the newer, and end the other.
    One that has begun its query is not given up for taking long: its task would count as one without a query,
    be given to another worker, and its query would begin there beside the next.

    Raising the fence of a task that is not to run is one more: it must not go on beside the task's query.
    """

    def __init__(self, limit_s: float) -> None:
        """`limit_s` is how long a start may take."""
        self._limit_s = limit_s
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._given_up: dict[str, tuple[StartSteps, asyncio.Task[None]]] = {}

    async def run(
        self,
        task: str,
        start: Callable[[], Result],
        steps: StartSteps,
        undo: Callable[[Result], Awaitable[None]],
        turns: asyncio.Semaphore | None = None,
    ) -> Result:
        """Call `start`, which tells its `steps`. Who cancels this gives it up, and knows: nothing runs then.

        `undo` takes back what it has made after it was given up. `turns` are other ones than those of starts:
        who is to be done in time does not wait behind a thousand queries.

        Raises:
            QueryError: it has taken too long, and no query was begun; whatever `start` raises.
        """
        await self._after_the_one_before(task, steps)
        async with turns or self._turns:
            running = asyncio.wrap_future(in_thread(f"spark-start {task}", start))
            turn_s = min(TURN_S, self._limit_s)
            await self._wait(task, running, steps, undo, turn_s)
        await self._wait(task, running, steps, undo, self._limit_s - turn_s)
        if not running.done() and steps.give_up():
            self._undo_later(task, running, steps, undo)
            raise self._too_long(steps)
        await self._wait(task, running, steps, undo, None)
        return running.result()

    async def _wait(
        self,
        task: str,
        running: asyncio.Future[Result],
        steps: StartSteps,
        undo: Callable[[Result], Awaitable[None]],
        seconds: float | None,
    ) -> None:
        try:
            await asyncio.wait({running}, timeout=seconds)
        except asyncio.CancelledError:
            is_sure = steps.give_up()
            undoing = self._undo_later(task, running, steps, undo)
            if not is_sure:
                await asyncio.shield(undoing)
            raise

    def _undo_later(
        self,
        task: str,
        running: asyncio.Future[Result],
        steps: StartSteps,
        undo: Callable[[Result], Awaitable[None]],
    ) -> asyncio.Task[None]:
        undoing = asyncio.create_task(self._take_back(task, running, undo))
        self._given_up[task] = steps, undoing
        return undoing

    async def _take_back(
        self, task: str, running: asyncio.Future[Result], undo: Callable[[Result], Awaitable[None]]
    ) -> None:
        await asyncio.wait({running})
        if running.exception() is None:
            await undo(running.result())
        del self._given_up[task]

    async def _after_the_one_before(self, task: str, steps: StartSteps) -> None:
        """It waits for what that one waits for."""
        if task not in self._given_up:
            return
        before, undoing = self._given_up[task]
        steps.at(before.step)
        await asyncio.wait({undoing}, timeout=self._limit_s)
        if not undoing.done():
            raise self._too_long(before)

    def _too_long(self, steps: StartSteps) -> QueryError:
        limit = f"{self._limit_s:g} s (--start-timeout-ms)"
        return QueryError(f"{steps.what} was given up after {limit}: it was waiting for {steps.step}")
