"""The engine over a backend that has no Spark: what it does to settle a task."""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from definition.document import parse_definition
from protocol.messages.base import encode_opaque
from tests.fakes.foreign_errors import RAISED, kind_of
from tests.unit.worker.spark.engine_bench import SETTINGS, spec
from worker.query_engine import QueryError
from worker.spark.engine import SparkEngine
from worker.spark.starts import AT_ONCE

if TYPE_CHECKING:
    from tests.fakes.spark_backend import FakeBackend
    from worker.sinks.fence import Owner


class Settling:
    """Holds whatever ends former owners until the test lets it go on."""

    def __init__(self, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.entered: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

        def end_former(owner: Owner, _checkpoint: str) -> None:
            self.entered.put(owner.task)
            assert self.go_on.wait(120)
            self.left.put(sorted(backend.started))

        monkeypatch.setattr(backend, "end_former", end_former)


async def test_settling_that_hangs_holds_one_thread_of_its_task(
    backend: FakeBackend, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is tried again; its cause says what it waits for."""
    del begin
    settling = Settling(backend, monkeypatch)
    engine = SparkEngine(structs.replace(SETTINGS, start_timeout_s=0.05), lambda: True)
    await engine.open()
    said = "keeping a former owner from writing was given up after .*: it was waiting for Spark, to end"
    for _ in range(3):
        with pytest.raises(QueryError, match=said):
            await engine.settle(spec())
    assert settling.entered.qsize() == 1
    settling.go_on.set()
    await engine.close()


async def test_settling_that_is_tried_again_waits_for_what_the_try_before_waits_for(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives that up as well can say what it was."""
    settling = Settling(backend, monkeypatch)
    told: asyncio.Queue[str] = asyncio.Queue()
    for _ in range(2):
        given_up = asyncio.create_task(engine.settle(spec(), told.put_nowait))
        assert await told.get() == "Spark, to end what a former owner has left running"
        given_up.cancel()
        await asyncio.wait({given_up})
    assert await asyncio.to_thread(settling.entered.get, timeout=120)
    settling.go_on.set()


async def test_settling_waits_for_no_turn_of_a_start(engine: SparkEngine, hang: Any) -> None:
    """It is to be done in time, however many queries are being started."""
    names = [f"t{n}" for n in range(2 * AT_ONCE)]
    hanging = hang(*names)
    starts = [asyncio.create_task(engine.start(spec(name))) for name in names]
    await engine.settle(spec("stopped"))
    assert not any(each.done() for each in starts)
    hanging.go_on.set()
    await asyncio.gather(*starts)


async def test_no_query_starts_beside_settling_that_was_given_up(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take what is the query's own for something that a former owner has left."""
    settling = Settling(backend, monkeypatch)
    given_up = asyncio.create_task(engine.settle(spec()))
    await asyncio.to_thread(settling.entered.get, timeout=120)
    given_up.cancel()
    await asyncio.wait({given_up})
    starting = asyncio.create_task(engine.start(spec()))
    await asyncio.wait({starting}, timeout=0.1)
    settling.go_on.set()
    assert await asyncio.to_thread(settling.left.get, timeout=120) == []
    await starting


async def test_settling_that_has_outlived_its_lease_ends_nobody(backend: FakeBackend, begin: Any) -> None:
    """A claim may wait long at somebody's lock, and the task be another worker's by then."""
    del begin
    answers = iter([True, False])
    engine = SparkEngine(SETTINGS, lambda: next(answers))
    await engine.open()
    with pytest.raises(QueryError, match="lost its lease"):
        await engine.settle(spec())
    assert backend.ended == []
    await engine.close()


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
async def test_a_fence_that_is_raised_stays_so_whatever_its_sink_raises_at_its_end(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Else a paused task would be settled again and again."""

    def fails() -> None:
        raise error

    claims: list[str] = []
    sink = SimpleNamespace(claim=lambda: claims.append("claim"), close=fails)
    monkeypatch.setattr("worker.spark.launch.open_sink", lambda *_: sink)
    document = {"source": {"format": "rate"}, "sink": {"format": "fenced_files", "options": {"path": "/x"}}}
    await engine.settle(replace(spec(), definition=parse_definition(encode_opaque(document))))
    assert claims == ["claim"]
