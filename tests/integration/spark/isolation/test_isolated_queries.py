from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.turns import eventually
from tests.integration.spark.isolation.conftest import left_of, until_batch
from tests.integration.spark.limited_tasks import quarantine_asked_for
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.spark.isolation.conftest import StartIsolated
    from worker.isolation.engine import IsolatedEngine
    from worker.query_engine import QuerySpec

HELD = """
def run(context):
    frame = context.spark.readStream.format("rate").load()

    def batch(rows, batch_id):
        with open(context.options["folder"] + "/reached", "w"):
            pass
        with open(context.options["folder"] + "/go_on"):
            pass
        with open(context.options["folder"] + "/done", "a") as done:
            done.write(f"{batch_id}\\n")
        print("a batch is done")

    return context.foreach_batch(frame, batch).trigger(processingTime="30 days")
"""
"""Says by one pipe that a batch is under way, and waits at another for its end; there is only one."""

COLLECTING = """
def run(context):
    frame = context.spark.readStream.format("rate").load()

    def batch(rows, batch_id):
        context.spark._jvm.java.lang.System.gc()

    return context.foreach_batch(frame, batch).trigger(processingTime="1 second")
"""
"""What a JVM holds is known once its old generation was collected; one of so short a life may never do it."""


@pytest.fixture
def held_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an entry point whose batches wait."""
    (tmp_path / "batches.py").write_text(HELD)
    for name in ("reached", "go_on"):
        os.mkfifo(tmp_path / name)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def _open(pipe: Path, mode: str) -> None:
    with pipe.open(mode):
        pass


async def test_a_stop_lets_the_batch_in_flight_finish(
    start_isolated: Any, held_batches: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is done and committed, and nothing is left of the process; what it prints is named."""
    query = await start_isolated(entrypoint="batches:run", options={"folder": str(held_batches)})
    await asyncio.to_thread(_open, held_batches / "reached", "r")
    stopping = asyncio.ensure_future(query.stop(600))
    await asyncio.wait({stopping}, timeout=0)
    assert not stopping.done()
    await asyncio.to_thread(_open, held_batches / "go_on", "w")
    await stopping
    assert await query.ended() is None
    assert (held_batches / "done").read_text() == "0\n"
    assert (Path(query.checkpoint) / "commits" / "0").exists()
    await query.process_over
    assert not left_of(query.process.pid)
    assert "t: a batch is done" in capsys.readouterr().out


async def test_a_batch_that_does_not_end_is_killed(start_isolated: Any, held_batches: Path) -> None:
    """A cut gives it no time at all: its process ends, and the stop is a clean one."""
    query = await start_isolated(entrypoint="batches:run", options={"folder": str(held_batches)})
    await asyncio.to_thread(_open, held_batches / "reached", "r")
    await query.stop(0)
    assert await query.ended() is None
    await query.process_over
    assert not left_of(query.process.pid)
    assert not (held_batches / "done").exists()


async def test_what_a_query_is_at_that_hangs_comes_over_the_line(
    start_isolated: Any, held_batches: Path
) -> None:
    """Its process looks, and the worker has both: that it is silent, and why."""
    options = {"folder": str(held_batches)}
    query = await start_isolated(entrypoint="batches:run", options=options, limits={"hung_s": 1})
    await asyncio.to_thread(_open, held_batches / "reached", "r")
    ended = asyncio.ensure_future(query.ended())
    async with asyncio.timeout(240):
        while "code of the user, in batches." not in str(query.stall):
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    assert query.stall.silent_s > 1
    assert query.trouble == str(query.stall)
    await query.stop(0)
    await query.process_over
    assert not left_of(query.process.pid)


async def test_a_task_that_holds_too_much_heap_asks_for_its_quarantine(
    isolated: IsolatedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what its own JVM has in use after a collection: Spark alone has more than this limit."""
    (tmp_path / "batches.py").write_text(COLLECTING)
    monkeypatch.syspath_prepend(str(tmp_path))
    report = await quarantine_asked_for(
        isolated,
        source=None,
        sink=None,
        entrypoint="batches:run",
        memory={"heap_mb": 512},
        limits={"heap_mb": {"max": 10, "action": "quarantine"}},
    )
    assert all(query.is_over for query in isolated._queries)
    assert report.state.value == "FAILED"
    assert report.cause is not None
    assert report.cause.startswith("limits.heap_mb: it holds ")
    assert report.cause.endswith(" MiB of its heap, more than 10")


async def test_without_the_lease_no_batch_begins(
    *, start_isolated: Any, flights: Any, database: Any, lease: Any
) -> None:
    """The worker is asked at the entry of each."""
    flights.add()
    query = await start_isolated(source=flights.source, sink=database.sink())
    await until_batch(query, 0)
    lease.holds = False
    flights.add()
    ended = await query.ended()
    assert ended.cause.startswith("the worker has lost its lease")
    assert database.ids() == flights.ids[:10]


async def test_a_stale_token_is_told_as_such(*, start_isolated: Any, flights: Any, database: Any) -> None:
    """The fence is the sink's, and the verdict comes over the line."""
    flights.add()
    owner = await start_isolated(token=2, source=flights.source, sink=database.sink())
    with pytest.raises(QueryError, match="is fenced: its token 1 is older than 2") as refused:
        await start_isolated(token=1, source=flights.source, sink=database.sink())
    assert refused.value.fenced
    await owner.stop(60)


async def test_a_start_that_is_given_up_leaves_nothing(
    isolated: IsolatedEngine, spec: Callable[..., QuerySpec], database: Any
) -> None:
    """Whoever cancels it knows that."""
    at: asyncio.Queue[str] = asyncio.Queue()
    starting = asyncio.ensure_future(
        isolated.start(spec("t", 1, source={"format": "rate"}, sink=database.sink()), at.put_nowait)
    )
    while await at.get() != "Spark, in a JVM of its own":
        pass
    (query,) = isolated._queries
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert query.process_over.done()
    await eventually(lambda: not left_of(query.process.pid))


async def test_what_the_spark_of_a_task_takes_is_told(
    isolated: IsolatedEngine, start_isolated: StartIsolated
) -> None:
    """As a part of what the worker takes; whose own Spark, a double here, knows of nothing."""
    query = await start_isolated(source={"format": "rate"}, sink={"format": "noop"})
    ended = asyncio.ensure_future(query.ended())
    async with asyncio.timeout(240):
        while query.resources is None:
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    seen = await isolated.resources("g")
    assert seen is not None
    assert seen.heap_max_bytes is not None
    assert seen.heap_bytes is not None
    assert 0 < seen.heap_bytes < seen.heap_max_bytes
    assert seen.checkpoint_bytes is None
