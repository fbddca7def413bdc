"""What is owned, as those see it who do something else with a task than run it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from protocol.states import Target
from tests.unit.worker.tasks.bench import change, grant
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


async def test_a_task_is_seen_as_it_runs_now(bench: Bench) -> None:
    """With the definition that it has by now, and only under its own token."""
    grant(bench, token=7)
    [query] = await bench.run("t1")
    holdings = bench.runner.holdings
    assert holdings.spec_of("t1", 7) == query.spec
    assert [holdings.spec_of(*other) for other in (("t1", 6), ("t1", 8), ("t2", 7))] == [None] * 3
    await change(bench, token=7, weight=2.0)
    changed = holdings.spec_of("t1", 7)
    assert changed is not None
    assert changed.definition.weight == 2.0


async def test_a_paused_task_is_owned_as_well(bench: Bench) -> None:
    """Nothing of it runs, and its rows are where they were."""
    await bench.run("t1")
    await change(bench, target=Target.PAUSED)
    assert bench.runner.holdings.spec_of("t1", 1) is not None


async def test_a_definition_that_cannot_be_read_is_told(bench: Bench) -> None:
    """Of a later version: whoever asks hears why nothing can be said."""
    grant(bench, new_in_a_later_version=1)
    bench.assign("t1")
    await bench.settle()
    with pytest.raises(QueryError, match="the definition cannot be used"):
        bench.runner.holdings.spec_of("t1", 1)


@pytest.mark.parametrize("how", ["moves away", "is lost"])
async def test_who_waits_for_its_loss_hears_of_it(bench: Bench, how: str) -> None:
    """When it begins to go: its batch may still run for a while."""
    bench.engine.slow.add("t1")
    await bench.run("t1")
    lost = asyncio.create_task(bench.runner.holdings.until_lost("t1", 1))
    await bench.settle()
    assert not lost.done()
    if how == "moves away":
        bench.assign(generation=2)
    else:
        bench.runner.lose("ILLEGAL_GENERATION")
    await bench.settle()
    assert lost.done()
    assert bench.runner.holdings.spec_of("t1", 1) is None


async def test_a_task_that_is_not_owned_is_lost_already(bench: Bench) -> None:
    """Nobody waits for what has happened."""
    await bench.run("t1")
    await bench.runner.holdings.until_lost("t1", 2)
    await bench.runner.holdings.until_lost("t2", 1)
