"""Requests about quarantined rows at the engine: in a thread, one at a time, each with its codes."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
from tests.fakes.turns import eventually
from tests.unit.worker.spark.engine_bench import spec
from worker.query_engine import NoQuarantineError, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.spark.engine import SparkEngine

REPLAY = QuarantineRequest(action="replay")


def answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., QuarantineAnswer]) -> None:
    monkeypatch.setattr("worker.spark.engine.answer", answer)


async def test_a_spark_that_is_lost_has_refused_nothing(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is interrupted, and may be asked again."""

    def lost(*_: Any) -> QuarantineAnswer:
        raise ConnectionRefusedError(111, "Connection refused")

    answers(monkeypatch, lost)
    monkeypatch.setattr(engine._backend, "is_loss", lambda error: isinstance(error, OSError))
    with pytest.raises(QueryError) as refused:
        await engine.quarantine(spec(), REPLAY)
    assert refused.value.outage


async def test_a_task_without_a_quarantine_is_told_apart(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure of Spark's."""

    def none(*_: Any) -> QuarantineAnswer:
        raise NoQuarantineError("task t puts no rows aside")

    answers(monkeypatch, none)
    with pytest.raises(NoQuarantineError):
        await engine.quarantine(spec(), REPLAY)


async def test_one_that_is_given_up_ends_at_its_next_step(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next one begins when it has."""
    go_on, steps, raised = threading.Event(), list[str](), list[str]()

    def slow(_: Any, __: Any, ___: Any, request: Any, at: Callable[[str], None]) -> QuarantineAnswer:
        if request.action == "list":
            return QuarantineAnswer(total=len(raised))
        at("the table")
        go_on.wait(60)
        try:
            at("the sink")
        except QueryError as error:
            raised.append(str(error))
            raise
        return QuarantineAnswer()

    answers(monkeypatch, slow)
    first = asyncio.create_task(engine.quarantine(spec(), REPLAY, steps.append))
    await eventually(lambda: steps == ["the table"])
    first.cancel()
    second = asyncio.create_task(engine.quarantine(spec(), QuarantineRequest(action="list"), steps.append))
    await eventually(lambda: len(steps) == 2)
    assert steps[1] == "an earlier quarantine request, which still waits for the table"
    go_on.set()
    assert (await second).total == 1
    assert raised == ["the quarantine request was given up"]
