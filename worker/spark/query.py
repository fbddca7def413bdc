"""One running streaming query, as the keeper sees it (`worker.executor.Query`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JNetworkError

from worker.executor import Ended
from worker.spark.causes import describe_java
from worker.spark.progress import Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor as Pool

    from worker.executor import Progress, QuerySpec
    from worker.spark.launch import Launched

_BOUNDED = {"AvailableNowTrigger", "OneTimeTrigger"}
_SETTLE_POLL_S = 0.02


class SparkQuery:
    """A query and its end. `poll` is for any thread, everything async for the event loop."""

    def __init__(
        self, spec: QuerySpec, launched: Launched, loop: asyncio.AbstractEventLoop, pool: Pool
    ) -> None:
        self.spec = spec
        self._handle = launched.handle
        self._java: Any = launched.handle._jsq  # noqa: SLF001 - its answers, without PySpark's JSON around each
        self._bounded = self._java.streamingQuery().trigger().toString() in _BOUNDED
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
        await self._loop.run_in_executor(self._pool, self._stop, timeout_s)
        await asyncio.shield(self._ended)

    def poll(self) -> bool:
        """Take in the news; whether the query is over. Blocks for some calls to the JVM."""
        active = self._java.isActive()
        with self._observing:
            self._observe()
        if active or not self._has_terminated():
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
        """Whether the query's thread is gone; `isActive` is false as soon as a stop was asked for."""
        try:
            return bool(self._java.awaitTermination(1))
        except Py4JNetworkError:
            raise
        except Exception:  # noqa: BLE001 - it ended with an exception, which `_how_it_ended` looks at
            return True

    def _how_it_ended(self) -> Ended:
        if self._gate.cause is not None:
            return Ended(self._gate.cause, self._gate.fenced)
        exception = self._java.exception()
        if exception.isDefined():
            return Ended(describe_java(exception.get()))
        return Ended() if self._bounded else Ended("the query ended by itself, which nobody had asked for")

    def _stop(self, timeout_s: float) -> None:
        with contextlib.suppress(Exception):  # whatever Spark says to it: that the end comes is watched
            if not self._settle(timeout_s):
                self._gate.cut()
            self._handle.stop()

    def _settle(self, timeout_s: float) -> bool:
        """Wait for the batch in flight to be done and committed; False if it took too long.

        A closed gate then refuses the next batch, which ends the query; where there is none it is cut into.
        """
        deadline = time.monotonic() + timeout_s
        before = self._last_batch()
        if not self._gate.close(timeout_s):
            return False
        if self._outlet.is_gated:
            return _wait_until(lambda: not self._is_working(), deadline)
        return _wait_until(lambda: not self._is_working() or self._last_batch() != before, deadline)

    def _last_batch(self) -> int:
        last = self._java.lastProgress()
        return -1 if last is None else int(last.batchId())

    def _is_working(self) -> bool:
        status = self._java.status()
        return bool(self._java.isActive() and status.isDataAvailable() and status.isTriggerActive())


def _wait_until(holds: Callable[[], bool], deadline: float) -> bool:
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_SETTLE_POLL_S)
    return True
