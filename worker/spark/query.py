"""One running streaming query, as the worker sees it (`worker.query_engine.Query`)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from definition.limits import Limits
from telemetry.cause_ids import new_cause_id
from telemetry.foreign_errors import FAILURES
from worker.query_engine import QueryError
from worker.spark.backend import Activity
from worker.spark.launch import HALT_AGAIN_S
from worker.spark.progress import ProgressTracker
from worker.spark.stall_watch import StallWatch
from worker.spark.stalls import Stalls
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor as Pool

    from worker.query_engine import Progress, QuerySpec, Stall
    from worker.spark.backend import Handle
    from worker.spark.launch import Launched

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

_SETTLE_POLL_S = 0.02
_HEIR_POLL_S = 0.2
_STATUS_EVERY = 10
"""Looks at a query to one at its status, which costs as much as all the others do."""


_NOBODY: Final = QueryError("nobody has asked for its end")


class SparkQuery:
    """A query and its end. `poll` is for any thread, everything async for the event loop."""

    def __init__(
        self,
        spec: QuerySpec,
        launched: Launched,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the clock that its silence is timed by, in seconds."""
        self.spec = spec
        self._handle = launched.handle
        self._session = launched.session
        self._gate = launched.session.gate
        self._output = launched.session.output
        self.checkpoint = launched.checkpoint
        self.committed = launched.committed
        self._finished = launched.finished
        self._watched = launched.watched
        self._progress = ProgressTracker(launched.handle.interval_ms)
        self._stalls = _stalls_of(spec, launched.handle)
        self._now = now
        self._heard: str | None = None
        self._observing = threading.Lock()
        self._finishing = threading.Lock()
        self._looks = 0
        self._is_at_work = False
        self._asked_for: QueryError | None = _NOBODY
        self._is_given_up = self._is_finished = False
        self._loop = loop
        self._pool = pool
        self._ended: asyncio.Future[QueryError | None] = loop.create_future()

    def progress(self) -> Progress | None:
        """The last finished batch."""
        return self._progress.last

    @property
    def has_work(self) -> bool:
        """A batch of new data is being done, or the source was ahead when the last one was planned."""
        return self._is_at_work or self._has_input

    @property
    def is_at_work(self) -> bool:
        """A batch is under way, by Spark's own word of a second ago."""
        return self._is_at_work

    @property
    def trouble(self) -> str | None:
        """Why nothing comes from what it reads, or where it is while it gets no batch done."""
        known = next((each.trouble for each in self._watched if each.trouble is not None), None)
        return known or (None if (stall := self.stall) is None else str(stall))

    @property
    def stall(self) -> Stall | None:
        """As of the last look at its status."""
        return self._stalls.stall

    @property
    def heap_bytes(self) -> int | None:
        """Not known: other queries have the same heap. That of a JVM of its own the process of it tells."""
        return None

    async def ended(self) -> QueryError | None:
        """Wait for the end."""
        return await asyncio.shield(self._ended)

    @property
    def can_be_left(self) -> bool:
        """Where it runs at a server, and writes to a sink with a fence as its definition says."""
        definition = self.spec.definition
        return self._handle.outlives and definition.entrypoint is None and definition.is_fenced

    async def leave(self, within_s: float) -> bool:
        """Ask the server who has it, again and again; its end is one that was asked for from now on."""
        self._ask_for(None)
        try:
            async with asyncio.timeout(within_s):
                await self._until_passed_on()
        except TimeoutError:
            return False
        self.finish(None)
        return True

    async def _until_passed_on(self) -> None:
        while not self._ended.done() and not await self._in_thread(self._handle.has_passed_on):
            await asyncio.wait({self._ended}, timeout=_HEIR_POLL_S)

    async def stop(self, timeout_s: float) -> None:
        """Let the batch in flight finish within `timeout_s` seconds, then end the query."""
        await self._bring_to_end(None, timeout_s)

    async def abort(self, cause: str) -> None:
        """End the query at once, which is a failure: whoever waits for it has not asked for that."""
        await self._bring_to_end(QueryError(cause), 0)

    async def _bring_to_end(self, ended: QueryError | None, timeout_s: float) -> None:
        """Each query is halted in a thread of its own: after the end of a lease none may wait for another.

        Nor for the next look at all of them, which may be a second away.
        """
        if self._ended.done():
            return
        self._ask_for(ended)
        self._gate.close()
        if not await self._settle(timeout_s):
            self._gate.cut()
        while not self._ended.done():
            await asyncio.wrap_future(in_thread(f"spark-halt {self.spec.task}", self._halt_and_look))
            await asyncio.wait([self._ended], timeout=HALT_AGAIN_S)

    def poll(self) -> bool:
        """Take in the news; whether the query is over. Blocks for some calls to Spark."""
        if self._is_given_up:
            return self._put_down()
        terminated = self._handle.has_terminated()
        with self._observing:
            self._observe()
            self._look_at_status()
        if not terminated:
            return False
        self.finish(self._how_it_ended())
        return True

    def give_up(self, cause: str) -> bool:
        """It cannot be watched any more: end it; whether it is over, else a later `poll` says so."""
        self._ask_for(QueryError(cause))
        self._is_given_up = True
        self._gate.close()
        self._gate.cut()
        return self._put_down()

    def _ask_for(self, end: QueryError | None) -> None:
        """The first who asks for its end says how that is told."""
        if self._asked_for is _NOBODY:
            self._asked_for = end

    def _put_down(self) -> bool:
        self._halt()
        with contextlib.suppress(Exception):  # of one that cannot be asked, no more is to be known than that
            if not self._handle.has_terminated():
                return False
        self.finish(None)
        return True

    def finish(self, ended: QueryError | None) -> None:
        """Spark has ended it, in whatever way, or is gone; from any thread, the first one counts."""
        with self._finishing:
            if self._is_finished:
                return
            self._is_finished = True
        self._let_go()
        if self._asked_for is not _NOBODY:
            ended = self._asked_for  # an asked-for stop is a clean one, whatever Spark said to it
        self._gate.shut(lambda: self._tell_end(ended))

    def _tell_end(self, ended: QueryError | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._resolve, ended)

    def _let_go(self) -> None:
        """Whatever goes wrong with that, the end is told."""
        for close in (*(each.close for each in self._watched), self._session.close):
            try:
                close()
            except FAILURES:
                log.exception(
                    "unexpected trouble after a query", task=self.spec.task, cause_id=new_cause_id()
                )

    def _resolve(self, ended: QueryError | None) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)

    def _observe(self) -> None:
        """Batches finish between two polls, too; a query that waits shows one record again and again."""
        if news := self._handle.progress(self._progress.batch_id):
            self._hear(news[-1]["timestamp"])
            so_far = (self._output.total, self._output.left_out, self._handle.spilled_bytes())
            finished = [record for record in news if self._progress.observe(record, *so_far)]
            if finished:
                self._finished(finished[-1])

    def _look_at_status(self) -> None:
        self._looks += 1
        if self._looks % _STATUS_EVERY == 0:
            activity = self._handle.activity()
            self._is_at_work = activity is Activity.WORKING
            is_busy = activity is not Activity.RESTING
            self._stalls.look(is_busy=is_busy, has_input=self._has_input, now=self._now())

    def _hear(self, at: str) -> None:
        """Spark has done a batch, or has found nothing to do; its record of that stays for a while."""
        if at != self._heard:
            self._heard = at
            self._stalls.heard()

    @property
    def _has_input(self) -> bool:
        lag = {} if self._progress.last is None else self._progress.last.metrics.get("lag", {})
        return any(lag.values())

    def _how_it_ended(self) -> QueryError | None:
        if failure := self._handle.failure():
            return failure
        bounded = self._handle.is_bounded
        return None if bounded else QueryError(self._handle.stopped)

    async def _settle(self, timeout_s: float) -> bool:
        """Wait for the batch in flight to be done and committed; False if it takes too long.

        No thread waits here: long batches of some queries must not keep others from being stopped.
        """
        if timeout_s <= 0:
            return False
        try:
            async with asyncio.timeout(timeout_s):
                await self._in_thread(self._handle.begin_no_more)
                before = await self._in_thread(self._handle.last_batch)
                while not await self._in_thread(self._is_at_rest, before):  # noqa: ASYNC110 - Spark does not call
                    await asyncio.sleep(_SETTLE_POLL_S)
        except TimeoutError:
            return False
        except Exception:  # noqa: BLE001 - where Spark cannot be asked, its batch is not waited for
            return True
        return True

    def _is_at_rest(self, before: int) -> bool:
        """Whether nothing is under way, or a batch later than `before` that may be cut.

        A closed gate refuses the next batch, which ends the query; where there is no gate, it is cut.
        """
        if self._gate.is_occupied:
            return False
        if self._handle.is_resting():
            return True
        return not self._output.is_gated and self._handle.last_batch() != before

    def _halt_and_look(self) -> None:
        self._halt()
        with contextlib.suppress(Exception):  # the monitor meets it, too, and knows what to do about it
            self.poll()

    def _halt(self) -> None:
        with contextlib.suppress(Exception):  # whatever Spark says to it: that the end comes is watched
            self._handle.halt()

    def _in_thread(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        return self._loop.run_in_executor(self._pool, function, *args)


def _stalls_of(spec: QuerySpec, handle: Handle) -> Stalls:
    limits = spec.definition.limits or Limits()
    watch = StallWatch(limits.silence_s, (handle.interval_ms or 0) / 1000)
    return Stalls(spec.task, watch, handle.whereabouts)
