from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from definition.document import parse_definition
from tests.fakes.query_engine import FakeEngine
from worker.isolation.child import TaskChild
from worker.isolation.messages import At, Ended, News, Refused, Run, Started, Up
from worker.query_engine import QuerySpec
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.isolation.channel import Channel
    from worker.isolation.messages import OfTask, OfWorker

DEFINITION = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


class Line:
    """To the worker: keeps what the process says, and lets a test act on a word of it."""

    def __init__(self) -> None:
        self.said: list[type[OfTask]] = []
        self.is_up = asyncio.Event()
        self.at_up: Callable[[], None] = lambda: None

    def send(self, message: OfTask) -> None:
        if not isinstance(message, At | News):
            self.said.append(type(message))
        if isinstance(message, Up):
            self.is_up.set()
            self.at_up()

    async def sent(self) -> None:
        """At once."""


async def run(child: TaskChild) -> None:
    """All of a process, with the one task that it is told of."""
    settings = SparkSettings(app_name="tests", checkpoint_root="/c")
    await child.run(Run.of(QuerySpec("g", "t", 1, DEFINITION), settings))


@pytest.mark.parametrize("word", ["as early as it can be", "the last thing before the start"])
async def test_a_query_that_is_stopped_before_its_start_is_not_started(word: str) -> None:
    """Whoever closes a worker waits for no query to come up."""
    line, engine = Line(), FakeEngine()
    child = TaskChild(cast("Channel[OfWorker]", line), engine)
    if word == "as early as it can be":
        child.stop(0.0)
    line.at_up = lambda: child.stop(0.0)
    await run(child)
    assert line.said == [Up, Refused]
    assert engine.attempts == []


async def test_a_query_that_is_stopped_while_it_starts_ends_at_once() -> None:
    """It has been begun, so that it comes to its end."""
    line, engine = Line(), FakeEngine()
    child = TaskChild(cast("Channel[OfWorker]", line), engine)
    gate = engine.held["t"] = asyncio.Event()
    running = asyncio.ensure_future(run(child))
    await line.is_up.wait()
    child.stop(0.0)
    gate.set()
    await running
    assert line.said == [Up, Started, Ended]
    assert [query.stops for query in engine.started] == [[0.0]]
