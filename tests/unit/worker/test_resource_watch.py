"""Looking at what a worker takes, every ten seconds."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from protocol.messages.resources import WorkerResources
from tests.fakes.clock import FakeClock
from tests.fakes.query_engine import FakeEngine
from worker.query_engine import QueryError
from worker.resources import LOOK_EVERY_S, LOOKS_TO_GIVE_BACK, ResourceWatch

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAP = WorkerResources(heap_bytes=7)


class Shaky(FakeEngine):
    """An engine that is not always there to be asked."""

    def __init__(self, answers: Sequence[WorkerResources | Exception | None]) -> None:
        super().__init__()
        self._answers = [*answers]

    async def resources(self, group: str | None) -> WorkerResources | None:
        assert group == "g"
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_each_look_is_passed_on_with_how_late_the_event_loop_was() -> None:
    """What cannot be told is neither kept nor passed on, and is asked for again."""
    clock, told = FakeClock(), list[WorkerResources]()
    engine = Shaky([HEAP, QueryError("Spark is not running"), None, HEAP, None])

    async def tell(seen: WorkerResources) -> None:
        told.append(seen)

    watch = ResourceWatch(engine, "g", loop_lag=lambda: 0.0126, clock=clock, tell=tell)
    running = asyncio.ensure_future(watch.run())
    seen = []
    for _ in range(4):
        await clock.advance(0)
        seen.append(watch.seen)
        await clock.advance(LOOK_EVERY_S)
    running.cancel()
    whole = WorkerResources(heap_bytes=7, loop_lag_ms=13)
    assert seen == [whole, None, None, whole]
    assert told == [whole, whole]


async def test_no_look_ends_the_worker() -> None:
    """A machine may have no room for the thread that looks; another time it has."""
    clock = FakeClock()
    engine = Shaky([RuntimeError("can't start new thread"), HEAP])

    async def tell(seen: WorkerResources) -> None:
        pass

    watch = ResourceWatch(engine, "g", loop_lag=lambda: 0.0, clock=clock, tell=tell)
    running = asyncio.ensure_future(watch.run())
    await clock.advance(0)
    await clock.advance(LOOK_EVERY_S)
    assert not running.done()
    assert watch.seen == WorkerResources(heap_bytes=7, loop_lag_ms=0)
    running.cancel()


async def test_memory_that_is_free_is_given_back_every_minute() -> None:
    """In a thread, for it takes some milliseconds; one that cannot be had ends nothing."""
    clock, loop, given_back = FakeClock(), asyncio.get_running_loop(), asyncio.Event()
    engine = Shaky([HEAP] * 20)
    calls: list[int] = []

    async def tell(seen: WorkerResources) -> None:
        pass

    def give_back() -> None:
        calls.append(threading.get_ident())
        loop.call_soon_threadsafe(given_back.set)
        raise RuntimeError("can't start new thread")

    watch = ResourceWatch(engine, "g", loop_lag=lambda: 0.0, clock=clock, tell=tell, give_back=give_back)
    running = asyncio.ensure_future(watch.run())
    await clock.advance(0)
    for _ in range(LOOKS_TO_GIVE_BACK - 2):
        await clock.advance(LOOK_EVERY_S)
    assert calls == []
    await clock.advance(LOOK_EVERY_S)
    await given_back.wait()
    assert calls != [threading.get_ident()]
    assert not running.done()
    running.cancel()
