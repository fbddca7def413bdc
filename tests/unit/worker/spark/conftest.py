from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.fakes.engine import FakeEngine, FakeWriter
from tests.unit.worker.spark.executor_bench import SETTINGS, Hanging
from worker.spark import executor as executor_module
from worker.spark.executor import SparkExecutor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], None]], None]:
    """Has starts call a function of the test, with the task's context, before the query is made."""

    def publish(function: Callable[[Any], None]) -> None:
        def run(context: Any) -> FakeWriter:
            function(context)
            return FakeWriter()

        module = types.ModuleType("tested")
        module.run = run  # type: ignore[attr-defined]  # what a module is made of
        monkeypatch.setitem(sys.modules, "tested", module)

    publish(lambda _context: None)
    return publish


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine()
    monkeypatch.setattr(executor_module, "open_engine", lambda _settings: engine)
    return engine


@pytest_asyncio.fixture
async def executor(engine: FakeEngine, begin: Any) -> AsyncIterator[SparkExecutor]:
    del engine, begin
    executor = SparkExecutor(SETTINGS, lambda: True)
    await executor.open()
    yield executor
    await executor.close()


@pytest.fixture
def hang(begin: Any) -> Iterator[Callable[..., Hanging]]:
    """Makes the starts of some tasks hang."""
    made: list[Hanging] = []

    def hang(*tasks: str) -> Hanging:
        made.append(Hanging(*tasks))
        begin(made[0])
        return made[0]

    yield hang
    for each in made:
        each.go_on.set()
