from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs
from pyspark.errors import PySparkException

from protocol.messages.membership import EngineEnd
from tests import connect_server
from worker.executor import QueryError
from worker.spark import executor as executor_module
from worker.spark.connect import engine
from worker.spark.connect.handle import RemoteHandle
from worker.spark.executor import SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.executor import QuerySpec


async def test_the_loss_of_the_server_is_noticed(
    remote: SparkExecutor, spec: Callable[..., QuerySpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor and its queries know when it has been silent for long enough; nothing hangs on it."""
    with connect_server.running(tmp_path, tmp_path) as server:
        executor = SparkExecutor(structs.replace(remote._settings, remote=server.url), lambda: True)
        await executor.open()
        definition: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
        query = await executor.start(spec("t", 1, **definition))
        monkeypatch.setattr(engine, "LOST_AFTER_S", 1.0)  # not before: starting is slow on a slow machine
        server.process.kill()
        async with asyncio.timeout(120):
            death, ended = await asyncio.gather(executor.died(), query.ended())
            how = death.how
            assert ended is not None
            assert (how, death.end) == (ended.cause, EngineEnd.LOST)
            assert how.startswith(f"the Spark Connect server {server.url} does not answer: UNAVAILABLE")
            await query.stop(30)
            with pytest.raises(QueryError):
                await executor.start(spec("u", 1, **definition))
            await executor.close()


async def test_the_end_of_a_worker_whose_query_is_still_stopping(
    remote: SparkExecutor, spec: Callable[..., QuerySpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for that as long as it may; then the query's session is ended, and nothing goes wrong."""
    halted = threading.Event()
    monkeypatch.setattr(RemoteHandle, "halt", lambda _self: halted.wait(120))
    monkeypatch.setattr(executor_module, "CLOSE_TIMEOUT_S", 0)
    executor = SparkExecutor(remote._settings, lambda: True)
    await executor.open()
    query = await executor.start(spec("t", 1, source={"format": "rate"}, sink={"format": "noop"}))
    try:
        await executor.close()
        assert await query.ended() == QueryError("Spark was closed")
    finally:
        halted.set()
    with pytest.raises(PySparkException, match="NO_ACTIVE_SESSION"):
        await asyncio.to_thread(lambda: query._handle.query.isActive)
