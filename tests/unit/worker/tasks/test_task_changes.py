"""What a task does when its target, its definition or its owner changes while it starts or runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ReportRequest
from tests.fakes.manager import failure
from tests.fakes.turns import until
from tests.unit.worker.tasks.bench import change, grant

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


@pytest.mark.parametrize("target", ["PAUSED", "STOPPED"])
async def test_a_start_that_hangs_is_not_in_a_stop_s_way(bench: Bench, target: str) -> None:
    """What is wanted now is done at once; nothing was started that would have to be stopped."""
    bench.engine.hold("t1")
    bench.assign("t1")
    await bench.settle()
    await change(bench, target=target)
    assert bench.manager.states("t1")[-1] == target
    assert bench.engine.started == []


@pytest.mark.parametrize("target", ["PAUSED", "STOPPED"])
async def test_a_task_is_not_at_rest_while_its_query_may_begin_yet(bench: Bench, target: str) -> None:
    """Nothing is told of a start that cannot be called back until it has been taken back."""
    gate = bench.engine.hold("t1")
    bench.engine.begun.add("t1")
    bench.assign("t1")
    await bench.settle()
    await change(bench, target=target)
    await bench.clock.advance(600)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("STARTING", "waits for the gate of t1")
    gate.set()
    await until(lambda: bench.manager.states("t1")[-1] == target)
    assert bench.engine.running == set()


async def test_a_task_that_moves_away_while_its_start_hangs(bench: Bench) -> None:
    """Is released at once, for its next owner."""
    bench.engine.hold("t1")
    bench.assign("t1")
    await bench.settle()
    bench.assign(generation=2)
    await bench.settle()
    assert bench.released == {"t1": 1}
    assert bench.runner.owned() == {}


async def test_pausing_stops_the_query_and_keeps_the_task(bench: Bench) -> None:
    """PAUSED is reported and not released; resuming starts the query under the same token."""
    (query,) = await bench.run("t1")
    await change(bench, target="PAUSED")
    assert query.stops == [30.0]
    assert bench.manager.states("t1")[-1] == "PAUSED"
    assert bench.runner.owned() == {"t1": 1}
    assert bench.released == {}
    await change(bench)
    assert bench.engine.query("t1").is_running
    assert bench.engine.query("t1").spec.token == 1


async def test_a_task_may_be_paused_from_the_start(bench: Bench) -> None:
    """Its new owner starts nothing."""
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await bench.settle()
    assert bench.engine.started == []
    assert bench.manager.states("t1") == ["PAUSED"]


async def test_stopping_reports_and_releases(bench: Bench) -> None:
    """STOPPED belongs to nobody; it is not claimed again until it is assigned again."""
    (query,) = await bench.run("t1")
    await change(bench, target="STOPPED")
    assert not query.is_running
    assert bench.manager.states("t1")[-1] == "STOPPED"
    assert bench.released == {"t1": 1}
    assert bench.runner.owned() == {}
    before = len(bench.claimed)
    bench.refresh()
    await bench.settle()
    assert len(bench.claimed) == before


async def test_a_stop_that_is_taken_back_before_it_is_known_is_no_stop(bench: Bench) -> None:
    """The manager was away when the task came to its stop, and is wanted again now."""
    await bench.run("t1")
    heard = bench.manager._rules[ReportRequest]
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await change(bench, target="STOPPED")
    await change(bench)
    bench.manager.rule(ReportRequest, heard)
    await bench.clock.advance(1)
    assert bench.engine.running == {"t1"}
    assert bench.released == {}


@pytest.mark.parametrize("what", [{"restart_count": 1}, {"version": 2, "sql": "SELECT * FROM source"}])
async def test_what_differs_in_effect_restarts_the_query(what: dict[str, Any], bench: Bench) -> None:
    """A manual restart, another definition: stop in order, start at once."""
    (query,) = await bench.run("t1")
    await change(bench, **what)
    assert query.stops == [30.0]
    assert len(bench.engine.queries("t1")) == 2
    assert bench.engine.running == {"t1"}


async def test_a_higher_token_is_another_life(bench: Bench) -> None:
    """The task was taken away and given again, perhaps as another one of that name: nothing goes on."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    query.advance(7, rows=1)
    await change(bench, token=2)
    assert query.stops == [0.0]
    assert [each.spec.token for each in bench.engine.queries("t1")] == [1, 2]
    assert bench.engine.running == {"t1"}
    assert {report.batch_id for report in bench.manager.reports("t1") if report.token == 2} == {None}
    assert bench.released == {}


async def test_a_task_deleted_and_created_again_runs_its_new_definition(bench: Bench) -> None:
    """Its version is the one that the worker knows, which ran the former task and has heard nothing of it."""
    await bench.run("t1")
    await change(bench, token=2, version=1, sql="SELECT 2 AS two FROM source")
    (_, query) = bench.engine.queries("t1")
    assert (query.spec.token, query.spec.definition.sql) == (2, "SELECT 2 AS two FROM source")


async def test_the_new_definition_is_the_one_that_runs(bench: Bench) -> None:
    """Not the one the query was first started with."""
    await bench.run("t1")
    await change(bench, version=2, sql="SELECT * FROM source")
    assert bench.engine.query("t1").spec.definition.sql == "SELECT * FROM source"


@pytest.mark.parametrize("changes", [{"weight": 5.0}, {"labels": {"a": "b"}}, {"worker": "w"}])
async def test_what_is_the_same_in_effect_runs_on(changes: dict[str, Any], bench: Bench) -> None:
    """The query is not touched."""
    (query,) = await bench.run("t1")
    await change(bench, version=2, **changes)
    assert bench.engine.queries("t1") == [query]
    assert query.stops == []


async def test_a_new_restart_policy_counts_without_a_restart(bench: Bench) -> None:
    """The next failure is judged by it."""
    (query,) = await bench.run("t1")
    await change(bench, version=2, restart={"max_restarts": 0})
    query.end("boom")
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "FAILED"


@pytest.mark.parametrize("what", [{"restart_count": 1}, {"version": 2, "sql": "SELECT * FROM source"}])
async def test_a_failed_task_is_started_afresh(what: dict[str, Any], bench: Bench) -> None:
    """By a manual restart or a mended definition, with a clean record."""
    policy = {"restart": {"max_restarts": 1}}
    bench.engine.broken["t1"] = "boom"
    grant(bench, **policy)
    bench.assign("t1")
    await bench.clock.advance(10)
    assert bench.manager.states("t1")[-1] == "FAILED"
    await change(bench, **policy, **what)
    assert bench.manager.states("t1")[-1] == "RESTARTING"


async def test_a_restart_does_not_wait_for_the_back_off(bench: Bench) -> None:
    """Whoever asks for it wants it now."""
    (query,) = await bench.run("t1")
    query.end("boom")
    await bench.settle()
    assert bench.engine.running == set()
    await change(bench, restart_count=1)
    assert bench.engine.running == {"t1"}


async def test_a_definition_this_worker_cannot_read_fails_the_task(bench: Bench) -> None:
    """With the reason, and until it is mended."""
    grant(bench, nonsense=1)
    bench.assign("t1")
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert last.state.value == "FAILED"
    assert "nonsense" in (last.cause or "")
    await change(bench, version=2)
    assert bench.engine.running == {"t1"}


async def test_a_claim_that_brings_nothing_new_changes_nothing(bench: Bench) -> None:
    """Claims are made at every change of any task."""
    (query,) = await bench.run("t1")
    for _ in range(5):
        bench.refresh()
        await bench.settle()
    assert bench.engine.queries("t1") == [query]
    assert len(bench.manager.asked(ClaimRequest)) == 6
