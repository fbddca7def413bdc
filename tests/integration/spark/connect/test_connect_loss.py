from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from tests import connect_server
from worker.executor import StartError
from worker.spark.connect import engine
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
            how, ended = await asyncio.gather(executor.died(), query.ended())
            assert how == ended.cause
            assert how.startswith(f"the Spark Connect server {server.url} does not answer: UNAVAILABLE")
            await query.stop(30)
            with pytest.raises(StartError):
                await executor.start(spec("u", 1, **definition))
            await executor.close()
