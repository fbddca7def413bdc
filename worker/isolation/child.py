"""What the process of a task does: it brings a Spark up, runs the one query, and ends with it.

When the worker is gone, the line to it breaks: then the process, its JVM and whatever else is in its group
end at once, in the middle of whatever they do. So do they when the JVM is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import threading
from typing import TYPE_CHECKING, Final

from telemetry.relayed_logs import log_for_relay
from telemetry.scope import open_scope
from worker.clock import SystemClock
from worker.isolation.channel import Channel
from worker.isolation.lifecycle import BEAT_S
from worker.isolation.messages import (
    Answer,
    At,
    Ended,
    Fault,
    Lost,
    News,
    OfWorker,
    Open,
    Refused,
    Run,
    Started,
    Stop,
    Takes,
    Up,
)
from worker.isolation.remote_lease import RemoteLease
from worker.malloc_arenas import use_one_arena
from worker.query_engine import QueryError
from worker.spark.engine import SparkEngine
from worker.waiting import first

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from worker.query_engine import Query, QueryEngine

LOOK_S: Final = 0.1
"""How often it is looked whether there are news."""
RESOURCES_S: Final = 10.0
"""How often it is looked what its Spark takes; as often as the worker tells."""
DEATH_S: Final = 0.5
"""How long the death of a JVM may take to be noticed after what it broke."""


def run(worker: socket.socket) -> int:
    """Serve the worker at the other end of that socket; returns the exit code of the process."""
    use_one_arena()
    log_for_relay()
    for asked in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked, lambda *_: None)  # the worker is told, and says when this is to end
    end_with(worker)
    asyncio.run(_serve(worker))
    return 0


def end_with(worker: socket.socket) -> None:
    """End the whole group as soon as the worker is gone, whatever it is doing."""

    def wait() -> None:
        poll = select.poll()
        poll.register(watched, getattr(select, "POLLRDHUP", 0))
        poll.poll()
        end_at_once()

    watched = worker.dup()
    threading.Thread(target=wait, name="worker-watch", daemon=True).start()


def end_at_once() -> None:
    """End this process and its JVM."""
    os.killpg(0, signal.SIGKILL)


async def _serve(worker: socket.socket) -> None:
    channel: Channel[OfWorker] = await Channel.over(worker, OfWorker)
    messages = channel.messages()
    opening = await anext(messages)
    if not isinstance(opening, Open):
        raise TypeError(f"the worker began with {type(opening).__name__}")
    open_scope(group=opening.group, task=opening.task)
    lease = RemoteLease(channel.send, SystemClock().now)
    child = TaskChild(channel, SparkEngine(opening.settings, lease.may_write))
    running = asyncio.ensure_future(child.run())
    listening = asyncio.ensure_future(_listen(messages, child, lease))
    await asyncio.wait({running, listening}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        end_at_once()
    running.result()
    listening.cancel()


async def _listen(messages: AsyncIterator[OfWorker], child: TaskChild, lease: RemoteLease) -> None:
    async for message in messages:
        if isinstance(message, Answer):
            lease.answered(message)
        elif isinstance(message, Run):
            child.begin(message)
        elif isinstance(message, Stop):
            child.stop(message.timeout_s)


class TaskChild:
    """Runs one query in an engine of its own, and says how it is doing."""

    def __init__(self, channel: Channel[OfWorker], engine: QueryEngine) -> None:
        self._channel = channel
        self._engine = engine
        self._query: Query | None = None
        self._wanted: Run | None = None
        self._is_told = asyncio.Event()
        self._stop_s: float | None = None
        self._stops: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """All of it; when this returns, nothing of Spark is left."""
        telling = [asyncio.ensure_future(self._tell_news()), asyncio.ensure_future(self._tell_resources())]
        try:
            self._channel.send(await self._outcome())
            await self._channel.sent()
        finally:
            for each in telling:
                each.cancel()
            await self._engine.close()

    def begin(self, wanted: Run) -> None:
        """This is the query."""
        self._wanted = wanted
        self._is_told.set()

    def stop(self, timeout_s: float) -> None:
        """End the query in order; one that is being started ends when it is, and one before that is not."""
        self._stop_s = timeout_s if self._stop_s is None else min(self._stop_s, timeout_s)
        self._is_told.set()
        if self._query is not None:
            stopping = asyncio.ensure_future(self._query.stop(timeout_s))
            self._stops.add(stopping)
            stopping.add_done_callback(self._stops.discard)

    async def _outcome(self) -> Refused | Ended:
        try:
            query = await self._start()
        except QueryError as error:
            await self._unless_lost(DEATH_S)
            return Refused(Fault.of(error))
        self._channel.send(Started(query.checkpoint, query.committed))
        if self._stop_s is not None:
            self.stop(self._stop_s)
        ended = await self._end_of(query)
        self._channel.send(self._news())
        return Ended(None if ended is None else Fault.of(ended))

    async def _start(self) -> Query:
        self._channel.send(At("Spark, in a JVM of its own"))
        await self._engine.open()
        gc.freeze()  # as the worker does
        self._channel.send(Up())
        wanted = await self._until_told()
        self._query = await self._engine.start(wanted.spec, lambda step: self._channel.send(At(step)))
        return self._query

    async def _until_told(self) -> Run:
        """What to run: the worker may not know yet. Raises `QueryError` if it is nothing any more."""
        if not await first(self._is_told.wait(), self._engine.died()):
            raise QueryError("spark was lost before a query was started")
        if self._wanted is None or self._stop_s is not None:
            raise QueryError("the query was stopped before it was started")
        return self._wanted

    async def _end_of(self, query: Query) -> QueryError | None:
        """Of a query whose JVM is lost there is no more to be heard than that."""
        ended = asyncio.ensure_future(query.ended())
        died = asyncio.ensure_future(self._engine.died())
        await asyncio.wait({ended, died}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done() or ended.result() is not None:
            await self._unless_lost(DEATH_S if ended.done() else None)
        died.cancel()
        return ended.result()

    async def _unless_lost(self, within_s: float | None) -> None:
        """The JVM may be what has failed: say so, and end with it."""
        died = asyncio.ensure_future(self._engine.died())
        try:
            await asyncio.wait({died}, timeout=within_s)
            if died.done() and not died.exception():
                self._channel.send(Lost(died.result().how))
                await self._channel.sent()
                end_at_once()
        finally:
            died.cancel()

    async def _tell_news(self) -> None:
        """When there are some, and once a beat."""
        told, since = News(), 0.0
        while True:
            news = self._news()
            if news != told or since >= BEAT_S:
                self._channel.send(news)
                await self._channel.sent()
                told, since = news, 0.0
            await asyncio.sleep(LOOK_S)
            since += LOOK_S

    async def _tell_resources(self) -> None:
        """What cannot be told now may be at the next look."""
        while True:
            await asyncio.sleep(RESOURCES_S)
            with contextlib.suppress(QueryError):
                if (resources := await self._engine.resources(None)) is not None:
                    self._channel.send(Takes(resources))

    def _news(self) -> News:
        query, requests = self._query, self._engine.kafka_requests
        if query is None:
            return News.of(None, None, requests, has_work=False, is_at_work=False)
        return News.of(
            query.progress(),
            query.trouble,
            requests,
            has_work=query.has_work,
            is_at_work=query.is_at_work,
            stall=query.stall,
        )
