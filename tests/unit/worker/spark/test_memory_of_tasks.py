"""A task that is to have so much memory: where that can be had, and where not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from definition.memory import Memory
from tests.unit.worker.spark.engine_bench import SETTINGS, spec
from worker.query_engine import QueryError
from worker.spark.engine import SparkEngine

if TYPE_CHECKING:
    from tests.fakes.spark_backend import FakeBackend
    from worker.query_engine import QuerySpec


@pytest.fixture
def bounded() -> QuerySpec:
    """A task with a heap of its own."""
    plain = spec()
    return replace(plain, definition=structs.replace(plain.definition, memory=Memory(heap_mb=600)))


async def test_a_spark_that_tasks_share_cannot_bound_one(engine: SparkEngine, bounded: QuerySpec) -> None:
    """No restart mends that."""
    with pytest.raises(QueryError, match="memory: is to be had on workers with --isolate only") as caught:
        await engine.start(bounded)
    assert caught.value.permanent


async def test_a_spark_of_one_task_has_been_bounded(
    begin: object, backend: FakeBackend, bounded: QuerySpec
) -> None:
    """By whoever has brought it up."""
    del begin, backend
    engine = SparkEngine(structs.replace(SETTINGS, is_of_one_task=True), lambda: True)
    await engine.open()
    query = await engine.start(bounded)
    await query.stop(0)
    await engine.close()
