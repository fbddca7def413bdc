"""Looks at the lag of tasks, each in a thread of its own: one that hangs holds up the others for a while.

A look waits for checkpoints, brokers and places with secrets. They have limits of their own, but for file
systems, and together they may take minutes.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from protocol.messages.lag import MAX_TROUBLE_LENGTH, TaskLag
from telemetry.secrets import scrub
from worker.query_engine import ignore_step
from worker.spark.starts import StartSteps
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S: Final = 30.0
"""How long a look may take. Those at other tasks come after it."""


class LagLooks:
    """Runs looks, from one event loop.

    One that was given up may go on in its thread, as far as its next step. Until that is over no other one at
    its task begins, so that threads do not pile up.
    """

    def __init__(self, limit_s: float = LIMIT_S, now: Callable[[], float] = time.time) -> None:
        """`limit_s` is how long a look may take, `now` the wall clock; both in seconds."""
        self._limit_s = limit_s
        self._now = now
        self._hanging: dict[str, StartSteps] = {}

    async def run(self, task: str, look: Callable[[Callable[[str], None]], TaskLag | None]) -> TaskLag | None:
        """What `look` finds, or that it was given up, and what it was waiting for.

        Args:
            task: whose lag it is.
            look: is called in a thread, with what it is to tell each thing that it may have to wait for.

        Raises:
            QueryError: whatever `look` raises.
        """
        if task in self._hanging:
            return self._given_up(self._hanging[task])
        steps = StartSteps(ignore_step, "a look at the lag")
        thread = asyncio.wrap_future(in_thread(f"spark-lag {task}", partial(look, steps.at)))
        await asyncio.wait({thread}, timeout=self._limit_s)
        if thread.done():
            return thread.result()
        steps.give_up()
        self._hanging[task] = steps
        thread.add_done_callback(partial(self._over, task))
        return self._given_up(steps)

    def _over(self, task: str, thread: asyncio.Future[TaskLag | None]) -> None:
        """Nobody waits for what it found, or raised."""
        del self._hanging[task]
        if not thread.cancelled():
            thread.exception()

    def _given_up(self, steps: StartSteps) -> TaskLag:
        told = f"{steps.what} was given up after {self._limit_s:g} s: it was waiting for {steps.step}"
        return TaskLag(at_ms=int(self._now() * 1000), trouble=scrub(told, MAX_TROUBLE_LENGTH))
