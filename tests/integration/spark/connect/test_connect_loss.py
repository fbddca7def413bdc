from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs
from pyspark.errors import PySparkException

from protocol.messages.membership import EngineEnd
from tests import connect_server
from worker.query_engine import QueryError
from worker.spark import engine as engine_module
from worker.spark.connect import backend
from worker.spark.connect.handle import RemoteHandle
from worker.spark.engine import SparkEngine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.query_engine import QuerySpec


async def test_the_loss_of_the_server_is_noticed(
    remote: SparkEngine, spec: Callable[..., QuerySpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine and its queries know when it has been silent for long enough; nothing hangs on it."""
    with connect_server.running(tmp_path, tmp_path) as server:
        engine = SparkEngine(structs.replace(remote._settings, remote=server.url), lambda: True)
        await engine.open()
        definition: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
        query = await engine.start(spec("t", 1, **definition))
        monkeypatch.setattr(backend, "LOST_AFTER_S", 1.0)  # not before: starting is slow on a slow machine
        server.process.kill()
        async with asyncio.timeout(120):
            death, ended = await asyncio.gather(engine.died(), query.ended())
            how = death.how
            assert ended is not None
            assert (how, death.end) == (ended.cause, EngineEnd.LOST)
            assert how.startswith(f"the Spark Connect server {server.url} does not answer: UNAVAILABLE")
            await query.stop(30)
            with pytest.raises(QueryError):
                await engine.start(spec("u", 1, **definition))
            await engine.close()


async def test_the_end_of_a_worker_whose_query_is_still_stopping(
    remote: SparkEngine, spec: Callable[..., QuerySpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for that as long as it may; then the query's session is ended, and nothing goes wrong."""
    halted = threading.Event()
    monkeypatch.setattr(RemoteHandle, "halt", lambda _self: halted.wait(120))
    monkeypatch.setattr(engine_module, "CLOSE_TIMEOUT_S", 0)
    engine = SparkEngine(remote._settings, lambda: True)
    await engine.open()
    query = await engine.start(spec("t", 1, source={"format": "rate"}, sink={"format": "noop"}))
    try:
        await engine.close()
        assert await query.ended() == QueryError("Spark was closed")
    finally:
        halted.set()
    with pytest.raises(PySparkException, match="NO_ACTIVE_SESSION"):
        await asyncio.to_thread(lambda: query._handle.query.isActive)
