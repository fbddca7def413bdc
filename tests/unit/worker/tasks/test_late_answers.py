"""Answers to overtaken claims, which say how things stood before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.messages.ownership import ClaimRequest, ClaimResponse
from tests.fakes.manager import granted
from tests.fakes.turns import until

if TYPE_CHECKING:
    from tests.fakes.manager import Call
    from tests.unit.worker.tasks.bench import Bench


async def overtaken(bench: Bench) -> tuple[Call[ClaimRequest], Call[ClaimRequest]]:
    """Two claims under way, of which the first one tells of a former revision; `t1` runs."""
    await bench.run("t1")
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1", "t2", generation=2)
    former = await bench.manager.next(ClaimRequest)
    bench.assign("t1", generation=3)
    latter = await bench.manager.next(ClaimRequest)
    bench.runner.refresh(7)
    return former, latter


async def test_an_older_answer_does_not_undo_a_pause(bench: Bench) -> None:
    """Nothing would correct it: the newer claim has told all there is to know."""
    former, latter = await overtaken(bench)
    latter.answer(ClaimResponse(granted=(granted("t1", 1, "PAUSED"),), tasks_revision=7))
    await until(lambda: bench.engine.running == set())
    former.answer(ClaimResponse(granted=(granted("t1", 1, "RUNNING"),), tasks_revision=6))
    await bench.settle()
    assert bench.engine.running == set()
    assert bench.manager.states("t1")[-1] == "PAUSED"


async def test_an_older_answer_does_not_bring_back_a_former_definition(bench: Bench) -> None:
    """The query that runs by the new one goes on."""
    former, latter = await overtaken(bench)
    changed = granted("t1", 1, version=2, sql="SELECT 2 AS two FROM source")
    latter.answer(ClaimResponse(granted=(changed,), tasks_revision=7))
    await until(lambda: len(bench.engine.queries("t1")) == 2)
    former.answer(ClaimResponse(granted=(granted("t1", 1),), tasks_revision=6))
    await bench.settle()
    assert len(bench.engine.queries("t1")) == 2
    assert bench.engine.query("t1").is_running


@pytest.mark.parametrize("revision", [7, 8, None])
async def test_an_answer_that_is_as_new_is_followed(revision: int | None, bench: Bench) -> None:
    """Also that of a manager which does not say how new it is."""
    former, latter = await overtaken(bench)
    latter.answer(ClaimResponse(granted=(granted("t1", 1, "PAUSED"),), tasks_revision=7))
    await until(lambda: bench.engine.running == set())
    former.answer(ClaimResponse(granted=(granted("t1", 1, "RUNNING"),), tasks_revision=revision))
    await until(lambda: bench.engine.running == {"t1"})
