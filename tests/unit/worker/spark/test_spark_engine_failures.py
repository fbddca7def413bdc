"""The engine over a backend that has no Spark: what others' code raises, and what cannot be watched."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED, kind_of
from tests.fakes.spark_backend import FakeBackend, FakeQuerySession
from tests.unit.worker.spark.engine_bench import spec
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from worker.spark.engine import SparkEngine


async def test_a_query_that_cannot_be_watched_is_ended_before_it_is_over(
    engine: SparkEngine, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task is started again, or given to another worker: nothing of it may run on."""
    query = await engine.start(spec())
    handle = backend.started["t"]
    halts: list[bool] = []

    def halt() -> None:
        halts.append(True)
        if len(halts) == 2:
            handle.over.set()

    def surprise(_after: int) -> Any:
        raise ValueError("a progress record of the future")

    monkeypatch.setattr(handle, "halt", halt)
    monkeypatch.setattr(handle, "progress", surprise)
    ended = await query.ended()
    assert ended == QueryError(
        "the query cannot be watched any more: ValueError: a progress record of the future"
    )
    assert handle.over.is_set()
    assert len(halts) == 2


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
async def test_whatever_closing_a_query_raises_its_end_is_told(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """A plugged-in sink may exit there; and all that belongs to the query is let go of."""

    def fails(_: object = None) -> None:
        closed.append("session")
        raise error

    closed: list[str] = []
    monkeypatch.setattr(FakeQuerySession, "close", fails)
    query = await engine.start(spec())
    query._watched = [SimpleNamespace(close=fails, trouble=None)]
    with capture_logs():
        async with asyncio.timeout(60):
            await query.stop(0)
            assert await query.ended() is None
    assert closed == ["session"] * 2


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
async def test_whatever_a_start_raises_it_is_refused(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """With its cause, in a process of the task's own, too: where sinks are opened and claimed, say."""

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("worker.spark.engine.launch", fails)
    with pytest.raises(QueryError) as refused:
        await engine.start(spec())
    assert refused.value.cause.startswith(first_line_of(error))
