from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from definition.document import parse_definition
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import settle, until
from worker.isolation import child as child_module
from worker.isolation.child import TaskChild
from worker.isolation.messages import At, Ended, Lost, News, Refused, Run, Started, Up
from worker.query_engine import QuerySpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.isolation.channel import Channel
    from worker.isolation.messages import OfTask, OfWorker

DEFINITION = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


SPEC = QuerySpec("g", "t", 1, DEFINITION)


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


@pytest.fixture
def made() -> tuple[Line, FakeEngine]:
    """The line to the worker, and an engine."""
    return Line(), FakeEngine()


async def run(child: TaskChild) -> None:
    """All of a process, with the one task that it is told of."""
    child.begin(Run.of(SPEC))
    await child.run()


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
    await until(lambda: engine.attempts == [SPEC])
    child.stop(0.0)
    gate.set()
    await running
    assert line.said == [Up, Started, Ended]
    assert [query.stops for query in engine.started] == [[0.0]]


async def test_a_process_that_is_prepared_waits_for_what_it_is_to_run(made: tuple[Line, FakeEngine]) -> None:
    """Its Spark is up before anybody knows that."""
    line, engine = made
    child = TaskChild(cast("Channel[OfWorker]", line), engine)
    running = asyncio.ensure_future(child.run())
    await line.is_up.wait()
    await settle()
    assert engine.attempts == []
    child.begin(Run.of(SPEC))
    await until(lambda: engine.attempts == [SPEC])
    child.stop(0.0)
    await running
    assert line.said == [Up, Started, Ended]


async def test_a_process_that_was_prepared_for_nobody_ends_in_order(made: tuple[Line, FakeEngine]) -> None:
    """It is stopped before it was told anything."""
    line, engine = made
    child = TaskChild(cast("Channel[OfWorker]", line), engine)
    line.at_up = lambda: child.stop(0.0)
    await child.run()
    assert line.said == [Up, Refused]
    assert not engine.is_open


async def test_a_process_that_is_prepared_ends_with_its_jvm(
    made: tuple[Line, FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, so that the start that was to take it does without."""
    line, engine = made
    ends: list[None] = []
    monkeypatch.setattr(child_module, "end_at_once", lambda: ends.append(None))
    running = asyncio.ensure_future(TaskChild(cast("Channel[OfWorker]", line), engine).run())
    await line.is_up.wait()
    engine.die("killed by signal 9")
    await running
    assert (line.said[:2], ends) == ([Up, Lost], [None])
