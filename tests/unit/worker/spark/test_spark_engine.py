"""The engine over a backend that has no Spark: what it does about starts, stops and losses."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from protocol.messages.membership import EngineEnd
from protocol.messages.tasks import Reached
from tests.fakes.spark_backend import FakeBackend, FakeHandle, FakeQuerySession
from tests.fakes.turns import settle
from tests.unit.worker.spark.engine_bench import SETTINGS, spec
from worker.query_engine import EngineDeath, NotedQuery, QueryError
from worker.sinks.errors import BatchRefusedError
from worker.spark.batches.batch_gate import BatchGate
from worker.spark.engine import SparkEngine
from worker.spark.launch import Launched, _followed
from worker.spark.starts import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.worker.spark.engine_bench import Hanging


ROOT = Path(__file__).parents[4]


async def test_starts_that_hang_keep_no_other_from_starting(
    engine: SparkEngine, hang: Callable[..., Hanging], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor from stopping; those that hang go on when what they wait for is there."""
    monkeypatch.setattr("worker.spark.starts.TURN_S", 0.01)
    names = [f"t{n}" for n in range(2 * AT_ONCE)]
    hanging = hang(*names)
    starts = [asyncio.create_task(engine.start(spec(name))) for name in names]
    query = await engine.start(spec("healthy"))
    await query.stop(30)
    assert await query.ended() is None
    assert not any(each.done() for each in starts)
    hanging.go_on.set()
    assert [query.spec.task for query in await asyncio.gather(*starts)] == names


async def test_what_a_start_waits_for_is_told(engine: SparkEngine, hang: Any) -> None:
    """Step by step, in the event loop."""
    hang()
    told: list[str] = []
    await engine.start(spec(), told.append)
    assert told == [
        "Spark, for a session",
        "the entry point tested:run",
        "the checkpoint /nowhere/g/t",
        "Spark, to start the query",
    ]


async def test_a_start_that_hangs_is_given_up(
    backend: FakeBackend, hang: Callable[..., Hanging], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it waited for as its cause. Its task's next start waits for it, and its query never runs."""
    monkeypatch.setattr("worker.spark.starts.TURN_S", 0.01)
    hanging = hang("t")
    engine = SparkEngine(structs.replace(SETTINGS, start_timeout_s=0.05), lambda: True)
    await engine.open()
    said = r"given up after 0.05 s \(--start-timeout-ms\): it was waiting for the entry point tested:run"
    for _ in range(2):
        with pytest.raises(QueryError, match=said) as refused:
            await engine.start(spec())
        assert not refused.value.permanent
    assert hanging.entered == ["t"]
    (session,) = backend.sessions
    hanging.go_on.set()
    assert await asyncio.to_thread(session.closed.wait, 120)
    assert backend.started == {}
    engine._starts._limit_s = 120
    query = await engine.start(spec())
    assert query.spec.task == "t"
    await engine.close()


async def test_a_start_that_nobody_wants_any_more_starts_nothing(
    engine: SparkEngine, backend: FakeBackend, hang: Callable[..., Hanging]
) -> None:
    """Whoever cancels it has not to wait for what it waits for."""
    hanging = hang("t")
    steps: asyncio.Queue[str] = asyncio.Queue()
    starting = asyncio.create_task(engine.start(spec(), steps.put_nowait))
    while await steps.get() != "the entry point tested:run":
        pass
    starting.cancel()
    await asyncio.wait({starting})
    assert starting.cancelled()
    hanging.go_on.set()
    assert await asyncio.to_thread(backend.sessions[0].closed.wait, 120)
    assert backend.started == {}


class Slow:
    """Holds what Spark is asked to start until the test lets it go on; `held` says when that is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, begins: bool) -> None:
        self.held, self.go_on = threading.Event(), threading.Event()
        start = FakeQuerySession.start

        def slow(session: FakeQuerySession, writer: Any, begin: Callable[[], None]) -> Any:
            if begins:
                begin()
            self.held.set()
            assert self.go_on.wait(120)
            return start(session, writer, (lambda: None) if begins else begin)

        monkeypatch.setattr(FakeQuerySession, "start", slow)


async def test_a_query_that_was_begun_is_ended_before_its_start_is_given_up(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is too late to call it back: whoever cancels waits until nothing of it runs any more."""
    slow = Slow(monkeypatch, begins=True)
    starting = asyncio.create_task(engine.start(spec()))
    assert await asyncio.to_thread(slow.held.wait, 120)
    starting.cancel()
    await asyncio.wait({starting}, timeout=0)
    assert not starting.done()
    slow.go_on.set()
    await asyncio.wait({starting})
    assert starting.cancelled()
    assert backend.started["t"].halts == 1


async def test_a_query_that_was_begun_is_waited_for_however_long_it_takes(
    backend: FakeBackend, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Giving it up would call a task over whose query begins afterwards."""
    del begin
    monkeypatch.setattr("worker.spark.starts.TURN_S", 0.01)
    slow = Slow(monkeypatch, begins=True)
    engine = SparkEngine(structs.replace(SETTINGS, start_timeout_s=0.02), lambda: True)
    await engine.open()
    starting = asyncio.create_task(engine.start(spec()))
    assert await asyncio.to_thread(slow.held.wait, 120)
    await asyncio.wait({starting}, timeout=0.1)
    assert not starting.done()
    slow.go_on.set()
    query = await starting
    assert query.spec.task == "t"
    assert backend.started["t"].halts == 0
    await engine.close()


async def test_a_start_that_waits_for_its_turn_at_spark_is_not_begun(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it to be called back; when its turn comes, it starts nothing."""
    slow = Slow(monkeypatch, begins=False)
    starting = asyncio.create_task(engine.start(spec()))
    assert await asyncio.to_thread(slow.held.wait, 120)
    starting.cancel()
    await asyncio.wait({starting})
    assert starting.cancelled()
    slow.go_on.set()
    assert await asyncio.to_thread(backend.sessions[0].closed.wait, 120)
    assert backend.started == {}


async def test_a_query_is_not_over_while_a_batch_of_it_is_in_python(
    engine: SparkEngine, backend: FakeBackend
) -> None:
    """It outlives the JVM that called it, may write until it is through, and gets no further than it must."""
    query = await engine.start(spec())
    gate: Any = backend.sessions[0].gate
    gate.enter()
    ending = asyncio.create_task(query.ended())
    await asyncio.to_thread(backend.die, EngineDeath("the JVM ended", EngineEnd.EXITED))
    await settle()
    assert not ending.done()
    with pytest.raises(BatchRefusedError):
        gate.check()
    gate.leave()
    assert await ending == QueryError("the JVM ended")
    with pytest.raises(BatchRefusedError):
        gate.enter()


async def test_a_stop_does_not_wait_for_the_next_look(
    backend: FakeBackend, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many queries that comes a second later, which is half of what is left after the end of a lease."""
    del backend, begin
    monkeypatch.setattr("worker.spark.monitor.PERIOD_S", 3600)
    engine = SparkEngine(SETTINGS, lambda: True)
    await engine.open()
    query = await engine.start(spec())
    async with asyncio.timeout(60):
        await query.stop(0)
    assert await query.ended() is None
    await engine.close()


async def test_what_is_over_is_let_go_of_once(engine: SparkEngine, backend: FakeBackend) -> None:
    """Whoever has stopped it finds that out, and so does who looks after all of them."""
    query = await engine.start(spec())
    await query.stop(0)
    assert await asyncio.to_thread(query.poll)
    assert [session.closings for session in backend.sessions] == [1]


async def test_the_engine_can_be_killed_while_it_is_being_closed(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits for what is still stopping, and that is what may take too long."""
    closing, go_on = threading.Event(), threading.Event()

    def close() -> None:
        closing.set()
        assert go_on.wait(120)

    monkeypatch.setattr(backend, "close", close)
    ending = asyncio.create_task(engine.close())
    await asyncio.to_thread(closing.wait)
    assert engine.kill()
    assert backend.is_killed
    go_on.set()
    await ending


async def test_queries_that_are_cut_are_halted_all_at_once(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a lease has run out, a quarter of a session is left, however many queries are slow to stop."""
    names = [f"t{n}" for n in range(64)]
    queries = [await engine.start(spec(name)) for name in names]
    all_asked = threading.Barrier(len(names))

    def halt(self: FakeHandle) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            all_asked.wait(60)
        self.over.set()

    monkeypatch.setattr(FakeHandle, "halt", halt)
    await asyncio.gather(*(query.stop(0) for query in queries))
    assert not all_asked.broken
    assert all(handle.over.is_set() for handle in backend.started.values())


HUNG = """
import asyncio, sys, threading, types
from tests.fakes.spark_backend import FakeBackend
from tests.unit.worker.spark.test_spark_engine import SETTINGS, spec
from worker.spark import engine as module

hanging = threading.Semaphore(0)
def run(context):
    hanging.release()
    threading.Event().wait()

tested = types.ModuleType("tested")
tested.run = run
sys.modules["tested"] = tested
module.open_backend = lambda _settings: FakeBackend()

async def main():
    engine = module.SparkEngine(SETTINGS, lambda: True)
    await engine.open()
    starts = [asyncio.create_task(engine.start(spec(str(n)))) for n in range(8)]
    for _ in starts:
        await asyncio.to_thread(hanging.acquire)
    await engine.close()

asyncio.run(main())
print("the end")
"""


async def test_the_process_ends_though_starts_hang() -> None:
    """Nobody waits for their threads."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HUNG),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert out.decode().splitlines()[-1] == "the end"


async def test_a_query_that_the_end_of_the_worker_ends_is_not_complete(engine: SparkEngine) -> None:
    """Nobody has asked for that end: a bounded query that was cut must not pass for one that is done."""
    query = await engine.start(spec())
    await engine.close()
    assert await query.ended() == QueryError("Spark was closed")


async def test_another_checkpoint_is_refused_before_anything_is_made_of_the_query(
    engine: SparkEngine, backend: FakeBackend, begin: Any
) -> None:
    """Its sinks' fences are raised there: whoever runs it with the right checkpoint would be stopped."""
    called: list[Any] = []
    begin(called.append)
    with pytest.raises(
        QueryError, match="the checkpoint nowhere holds no batch, but the task has come to batch 3"
    ):
        await engine.start(replace(spec(), reached=Reached(3, "/shared/g/t", "w1")))
    assert (called, backend.started) == ([], {})
    [session] = backend.sessions
    assert session.closed.is_set()


@pytest.mark.parametrize(("commits_late", "told"), [(False, SETTINGS.checkpoint("g", "t")), (True, None)])
async def test_where_a_query_keeps_its_progress(
    *, engine: SparkEngine, backend: FakeBackend, commits_late: bool, told: str | None
) -> None:
    """Not said of one whose checkpoint lags behind its batches: it would be taken for another's."""
    backend.commits_late = commits_late
    query = await engine.start(spec())
    assert query.checkpoint == told


@pytest.mark.parametrize(("commits_late", "told"), [(False, [{}]), (True, [])])
def test_consumer_groups_are_never_ahead_of_the_checkpoint(*, commits_late: bool, told: list[Any]) -> None:
    """Of a query whose checkpoint lags behind its batches they are told when it starts only."""
    finished: list[Any] = []
    following: Any = SimpleNamespace(finished=finished.append)
    session: Any = None
    followed = _followed(Launched(FakeHandle(commits_late=commits_late), session, None, None), following)
    followed.finished({})
    assert (finished, followed.watched) == (told, [following])


async def test_what_is_noted_down_is_the_group_s(backend: FakeBackend, engine: SparkEngine) -> None:
    """Below the checkpoint root, where no other group's is; one of them is ended."""
    left = NotedQuery("t", 1, "there")
    backend.left = {"/nowhere/g": (left,)}
    assert await engine.noted("g") == (left,)
    assert await engine.noted("h") == ()
    await engine.end_noted(left)
    assert backend.swept == [left]


async def test_a_query_that_cannot_be_ended_is_told(backend: FakeBackend, engine: SparkEngine) -> None:
    """As a start that fails is; and so is that there is no Spark."""
    backend.end_trouble = ConnectionError("the server does not answer")
    with pytest.raises(QueryError, match="does not answer"):
        await engine.end_noted(NotedQuery("t", 1, "there"))
    await engine.close()
    with pytest.raises(QueryError, match="not running"):
        await engine.noted("g")


class Watch:
    """A look at a cluster."""

    trouble = None

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def breaks(*_: object) -> Any:
    """Whatever is asked of it."""
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("what", ["watch_sources", "_follower"])
async def test_a_query_that_cannot_be_looked_after_is_ended_before_its_start_fails(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Else it would run on without an owner; it takes Spark two calls, and its batch a while."""
    watch, told = Watch(), []
    monkeypatch.setattr("worker.spark.launch.watch_sources", lambda *_: [watch])
    monkeypatch.setattr(
        f"worker.spark.launch.{what}", breaks if what == "watch_sources" else lambda *_: breaks
    )
    monkeypatch.setattr("worker.spark.launch.HALT_AGAIN_S", 0.001)
    close = FakeQuerySession.close

    def halt(handle: FakeHandle) -> None:
        handle.halts += 1
        if handle.halts == 2:
            handle.over.set()

    def shut(gate: BatchGate, then: Callable[[], None]) -> None:
        let_out(gate, then)
        gate.leave()

    def closed(session: FakeQuerySession) -> None:
        told.append((backend.started["t"].over.is_set(), session.gate.is_occupied))
        close(session)

    def start(session: FakeQuerySession, writer: Any, begin: Callable[[], None]) -> FakeHandle:
        handle = begun(session, writer, begin)
        entry(session).enter()
        return handle

    begun, let_out = FakeQuerySession.start, BatchGate.shut
    monkeypatch.setattr(BatchGate, "shut", shut)
    monkeypatch.setattr(FakeQuerySession, "start", start)
    monkeypatch.setattr(FakeQuerySession, "close", closed)
    monkeypatch.setattr(FakeHandle, "halt", halt)
    with pytest.raises(QueryError, match="can't start new thread"):
        await engine.start(spec())
    assert told == [(True, False)]
    assert watch.is_closed == (what == "_follower")
    with pytest.raises(BatchRefusedError):
        entry(backend.sessions[0]).enter()


def entry(session: FakeQuerySession) -> BatchGate:
    """The batches' side of its gate."""
    assert isinstance(session.gate, BatchGate)
    return session.gate


async def test_a_query_of_a_spark_that_is_gone_is_not_waited_for(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be asked no more whether it is over, and is."""
    monkeypatch.setattr("worker.spark.launch.watch_sources", breaks)

    def halt(_: FakeHandle) -> None:
        raise ConnectionError("the JVM is gone")

    monkeypatch.setattr(FakeHandle, "halt", halt)
    with pytest.raises(QueryError, match="can't start new thread"):
        await engine.start(spec())
    assert backend.sessions[0].closings == 1
