"""The executor over an engine that has no Spark: what it does to settle a task."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from tests.unit.worker.spark.executor_bench import SETTINGS, spec
from worker.executor import QueryError
from worker.spark.executor import SparkExecutor
from worker.spark.starts import AT_ONCE

if TYPE_CHECKING:
    from tests.fakes.engine import FakeEngine
    from worker.sinks.marks import Owner


class Settling:
    """Holds whatever ends former owners until the test lets it go on."""

    def __init__(self, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.entered: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

        def end_former(owner: Owner, _checkpoint: str) -> None:
            self.entered.put(owner.task)
            assert self.go_on.wait(120)
            self.left.put(sorted(engine.started))

        monkeypatch.setattr(engine, "end_former", end_former)


async def test_settling_that_hangs_holds_one_thread_of_its_task(
    engine: FakeEngine, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is tried again; its cause says what it waits for."""
    del begin
    settling = Settling(engine, monkeypatch)
    executor = SparkExecutor(structs.replace(SETTINGS, start_timeout_s=0.05), lambda: True)
    await executor.open()
    said = "keeping a former owner from writing was given up after .*: it was waiting for Spark, to end"
    for _ in range(3):
        with pytest.raises(QueryError, match=said):
            await executor.settle(spec())
    assert settling.entered.qsize() == 1
    settling.go_on.set()
    await executor.close()


async def test_settling_that_is_tried_again_waits_for_what_the_try_before_waits_for(
    executor: SparkExecutor, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives that up as well can say what it was."""
    settling = Settling(engine, monkeypatch)
    told: asyncio.Queue[str] = asyncio.Queue()
    for _ in range(2):
        given_up = asyncio.create_task(executor.settle(spec(), told.put_nowait))
        assert await told.get() == "Spark, to end what a former owner has left running"
        given_up.cancel()
        await asyncio.wait({given_up})
    assert await asyncio.to_thread(settling.entered.get, timeout=120)
    settling.go_on.set()


async def test_settling_waits_for_no_turn_of_a_start(executor: SparkExecutor, hang: Any) -> None:
    """It is to be done in time, however many queries are being started."""
    names = [f"t{n}" for n in range(2 * AT_ONCE)]
    hanging = hang(*names)
    starts = [asyncio.create_task(executor.start(spec(name))) for name in names]
    await executor.settle(spec("stopped"))
    assert not any(each.done() for each in starts)
    hanging.go_on.set()
    await asyncio.gather(*starts)


async def test_no_query_starts_beside_settling_that_was_given_up(
    executor: SparkExecutor, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take what is the query's own for something that a former owner has left."""
    settling = Settling(engine, monkeypatch)
    given_up = asyncio.create_task(executor.settle(spec()))
    await asyncio.to_thread(settling.entered.get, timeout=120)
    given_up.cancel()
    await asyncio.wait({given_up})
    starting = asyncio.create_task(executor.start(spec()))
    await asyncio.wait({starting}, timeout=0.1)
    settling.go_on.set()
    assert await asyncio.to_thread(settling.left.get, timeout=120) == []
    await starting


async def test_settling_that_has_outlived_its_lease_ends_nobody(engine: FakeEngine, begin: Any) -> None:
    """A claim may wait long at somebody's lock, and the task be another worker's by then."""
    del begin
    answers = iter([True, False])
    executor = SparkExecutor(SETTINGS, lambda: next(answers))
    await executor.open()
    with pytest.raises(QueryError, match="lost its lease"):
        await executor.settle(spec())
    assert engine.ended == []
    await executor.close()
