"""Errands of one kind in threads: one at a time, and one that is given up is kept from computing on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from worker.query_engine import QueryError
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

AGAIN_S: Final = 1.0
"""Between two interrupts of an errand that was given up: it may just have been about to begin a job."""


class Cancellation:
    """What an errand comes to in its thread, and how that is ended. For any thread."""

    def __init__(self, tell: Callable[[str], object], noun: str = "check") -> None:
        """`tell` is called in the errand's thread with each thing that it may have to wait for."""
        self._noun = noun
        self.step = "a thread"
        self._tell = tell
        self._lock = threading.Lock()
        self._interrupt: Callable[[], None] = lambda: None
        self._is_given_up = False
        self._over = threading.Event()

    def at(self, step: str) -> None:
        """The errand comes to `step`, a noun for what it may have to wait for.

        Raises:
            QueryError: it was given up.
        """
        with self._lock:
            if self._is_given_up:
                raise QueryError(f"the {self._noun} was given up")
            self.step = step
        self._tell(step)

    def interrupts(self, interrupt: Callable[[], None]) -> None:
        """From now on `interrupt` ends what the errand computes."""
        with self._lock:
            self._interrupt = interrupt

    def over(self) -> None:
        """Its thread has come to an end."""
        self._over.set()

    def give_up(self) -> None:
        """Let it go no further; returns when its thread has ended."""
        with self._lock:
            self._is_given_up = True
        while not self._over.is_set():
            with contextlib.suppress(Exception):  # a Spark that is gone computes nothing
                self._interrupt()
            self._over.wait(AGAIN_S)


class ErrandRuns(Generic[Result]):
    """Runs errands, each called `noun` where a person reads of it, from one event loop."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._last: Cancellation | None = None
        self._thread: asyncio.Future[Result] | None = None

    async def run(self, errand: Callable[[Cancellation], Result], at: Callable[[str], object]) -> Result:
        """What comes of it. Who cancels this gives it up; the next one begins when its thread has ended.

        Args:
            errand: is called in a thread, and tells what it may have to wait for.
            at: is told that in the event loop.

        Raises:
            QueryError: whatever `errand` raises.
        """
        await self._after_the_one_before(at)
        loop = asyncio.get_running_loop()
        cancellation = Cancellation(lambda step: loop.call_soon_threadsafe(at, step), self._noun)
        thread = asyncio.wrap_future(in_thread(f"spark-{self._noun}", partial(_run, errand, cancellation)))
        self._last, self._thread = cancellation, thread
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            thread.add_done_callback(_look_at)
            in_thread(f"spark-{self._noun}-end", cancellation.give_up)
            raise

    async def _after_the_one_before(self, at: Callable[[str], object]) -> None:
        while self._thread is not None and self._last is not None and not self._thread.done():
            at(f"an earlier {self._noun}, which still waits for {self._last.step}")
            await asyncio.wait({self._thread})


def _run(errand: Callable[[Cancellation], Result], cancellation: Cancellation) -> Result:
    try:
        return errand(cancellation)
    finally:
        cancellation.over()


def _look_at(thread: asyncio.Future[Result]) -> None:
    """Nobody waits for it any more; what it raised is nobody's concern."""
    if not thread.cancelled():
        thread.exception()
