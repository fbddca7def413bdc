from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.fakes.spark_backend import FakeBackend, FakeWriter
from tests.unit.worker.spark.engine_bench import SETTINGS, Hanging
from worker.spark import engine as engine_module
from worker.spark.engine import SparkEngine

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
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    backend = FakeBackend()
    monkeypatch.setattr(engine_module, "open_backend", lambda _settings: backend)
    return backend


@pytest_asyncio.fixture
async def engine(backend: FakeBackend, begin: Any) -> AsyncIterator[SparkEngine]:
    del backend, begin
    engine = SparkEngine(SETTINGS, lambda: True)
    await engine.open()
    yield engine
    await engine.close()


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
