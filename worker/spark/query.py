"""One running streaming query, as the keeper sees it (`worker.executor.Query`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JError

from worker.executor import Ended
from worker.spark.causes import describe_java
from worker.spark.progress import Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor as Pool

    from worker.executor import Progress, QuerySpec
    from worker.spark.launch import Launched

_T = TypeVar("_T")

_BOUNDED = {"AvailableNowTrigger", "OneTimeTrigger"}
_SETTLE_POLL_S = 0.02
_HALT_AGAIN_S = 0.2
"""Spark cancels the jobs it knows of: one that is just being submitted takes a second call."""


class SparkQuery:
    """A query and its end. `poll` is for any thread, everything async for the event loop."""

    def __init__(
        self, spec: QuerySpec, launched: Launched, loop: asyncio.AbstractEventLoop, pool: Pool
    ) -> None:
        self.spec = spec
        self._handle = launched.handle
        self._java: Any = launched.handle._jsq  # noqa: SLF001 - its answers, without PySpark's JSON around each
        stream: Any = self._java.streamingQuery()
        self._thread: Any = stream.queryExecutionThread()
        self._bounded = stream.trigger().toString() in _BOUNDED
        self._gate = launched.gate
        self._outlet = launched.outlet
        self._tally = Tally()
        self._observing = threading.Lock()
        self._stopping = False
        self._loop = loop
        self._pool = pool
        self._ended: asyncio.Future[Ended] = loop.create_future()

    def progress(self) -> Progress | None:
        """The last finished batch."""
        return self._tally.last

    async def ended(self) -> Ended:
        """Wait for the end."""
        return await asyncio.shield(self._ended)

    async def stop(self, timeout_s: float) -> None:
        """Let the batch in flight finish within `timeout_s` seconds, then end the query."""
        if self._ended.done():
            return
        self._stopping = True
        self._gate.close()
        if not await self._settle(timeout_s):
            self._gate.cut()
        while not self._ended.done():
            await self._in_thread(self._halt)
            await asyncio.wait([self._ended], timeout=_HALT_AGAIN_S)

    def poll(self) -> bool:
        """Take in the news; whether the query is over. Blocks for some calls to the JVM."""
        terminated = self._has_terminated()
        with self._observing:
            self._observe()
        if not terminated:
            return False
        self.finish(self._how_it_ended())
        return True

    def finish(self, ended: Ended) -> None:
        """The query is over, in whatever way; from any thread, the first one counts."""
        self._outlet.close()
        if self._stopping:
            ended = Ended()  # an asked-for stop is a clean one, whatever Spark said to it
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._resolve, ended)

    def _resolve(self, ended: Ended) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)

    def _observe(self) -> None:
        """Batches finish between two polls, too: then the records that Spark keeps are gone through."""
        last = self._java.lastProgress()
        if last is None or last.batchId() <= self._tally.batch_id:
            return
        if last.batchId() > self._tally.batch_id + 1:
            for record in self._java.recentProgress():
                self._tally.observe(json.loads(record.json()), self._outlet.total)
        self._tally.observe(json.loads(last.json()), self._outlet.total)

    def _has_terminated(self) -> bool:
        """Whether nothing of it runs any more.

        `isActive` is false as soon as a stop was asked for, and `awaitTermination` takes its word for it.
        """
        return not self._thread.isAlive()

    def _how_it_ended(self) -> Ended:
        if self._gate.cause is not None:
            return Ended(self._gate.cause, self._gate.fenced)
        exception = self._java.exception()
        if exception.isDefined():
            return Ended(describe_java(exception.get()))
        return Ended() if self._bounded else Ended("the query ended by itself, which nobody had asked for")

    async def _settle(self, timeout_s: float) -> bool:
        """Wait for the batch in flight to be done and committed; False if it takes too long.

        No thread waits here: long batches of some queries must not keep others from being stopped.
        """
        try:
            async with asyncio.timeout(timeout_s):
                before = await self._in_thread(self._last_batch)
                while not await self._in_thread(self._is_at_rest, before):  # noqa: ASYNC110 - Spark does not call
                    await asyncio.sleep(_SETTLE_POLL_S)
        except TimeoutError:
            return False
        except Py4JError:
            return True  # the JVM is gone, and the batch with it
        return True

    def _is_at_rest(self, before: int) -> bool:
        """Whether nothing is under way, or a batch later than `before` that may be cut.

        A closed gate refuses the next batch, which ends the query; where there is no gate, it is cut.
        """
        if self._gate.is_occupied:
            return False
        status = self._java.status()
        if not (self._java.isActive() and status.isDataAvailable() and status.isTriggerActive()):
            return True
        return not self._outlet.is_gated and self._last_batch() != before

    def _last_batch(self) -> int:
        last = self._java.lastProgress()
        return -1 if last is None else int(last.batchId())

    def _halt(self) -> None:
        with contextlib.suppress(Exception):  # whatever Spark says to it: that the end comes is watched
            self._handle.stop()

    def _in_thread(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        return self._loop.run_in_executor(self._pool, function, *args)
