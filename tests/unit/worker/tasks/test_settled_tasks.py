"""Tasks that are not to run: their sinks are told all the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from protocol.messages.tasks import TaskReset
from tests.fakes.manager import granted
from tests.fakes.turns import settle, until
from tests.unit.worker.tasks.bench import SETTINGS, change, grant
from worker.tasks.grants import read_grant
from worker.tasks.settling import AGAIN

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


def causes(bench: Bench) -> list[str | None]:
    """Those of t1, as the manager was told."""
    return [report.cause for report in bench.manager.reports("t1")]


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
async def test_a_task_that_is_not_to_run_is_settled_first(target: str, bench: Bench) -> None:
    """Whoever had it before is kept from writing, though nobody starts it; once is enough."""
    reset = TaskReset(4)
    grant(bench, token=5, target=target, reset=reset)
    bench.assign("t1")
    await until(lambda: bench.manager.states("t1") == [target])
    [spec] = bench.engine.settled
    assert (spec.token, spec.reset) == (5, reset)
    assert bench.engine.attempts == []
    await change(bench, token=5, target=target, reset=reset, restart_count=1)
    assert bench.engine.settled == [spec]


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
async def test_a_query_that_has_run_has_settled_its_task(target: str, bench: Bench) -> None:
    """It raised the fence before it read anything."""
    await bench.run("t1")
    await change(bench, target=target)
    assert bench.manager.states("t1")[-1] == target
    assert bench.engine.settled == []


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
async def test_what_could_not_be_settled_says_why(target: str, bench: Bench) -> None:
    """And is as it is meant to be all the same: the manager remembers that it is not settled."""
    bench.engine.broken["t1"] = "no such host"
    grant(bench, target=target)
    bench.assign("t1")
    await until(lambda: causes(bench)[-1:] == ["no such host"])
    assert bench.manager.states("t1") == [target]


async def test_a_stop_that_nothing_is_known_of_settles_nothing(bench: Bench) -> None:
    """A definition that cannot be read names no sink: the manager hears that it is not settled, and why."""
    grant(bench, target="STOPPED", sinc={})
    bench.assign("t1")
    await until(lambda: bench.manager.states("t1") == ["STOPPED"])
    assert bench.engine.settled == []
    cause = bench.manager.reports("t1")[-1].cause
    assert cause is not None
    assert "sinc" in cause


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
async def test_settling_that_takes_long_is_in_nobody_s_way(target: str, bench: Bench) -> None:
    """A database that does not answer keeps no task from being resumed, and none from being stopped here."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    grant(bench, target=target)
    bench.assign("t1")
    await bench.settle()
    assert "STOPPED" not in bench.manager.states("t1")
    bench.runner.lose("ILLEGAL_GENERATION")
    await until(lambda: not bench.runner._running)
    grant(bench)
    bench.assign("t1", generation=2)
    await until(lambda: bench.engine.running == {"t1"})


async def test_a_stopped_task_whose_sink_hangs_says_so_before_its_token_is_fenced(bench: Bench) -> None:
    """The manager's patience is a rebalance timeout; a start may take three times that."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    grant(bench, target="STOPPED")
    bench.assign("t1")
    await bench.settle()
    await bench.clock.advance(0.79 * SETTINGS.rebalance_timeout_ms / 1000)
    await bench.settle()
    assert "STOPPED" not in bench.manager.states("t1")
    await bench.clock.advance(0.02 * SETTINGS.rebalance_timeout_ms / 1000)
    await until(lambda: "STOPPED" in bench.manager.states("t1"))
    cause = str(causes(bench)[-1])
    assert "given up after 48 s" in cause
    assert "waiting for the sink of t1" in cause


async def test_what_took_time_before_a_task_is_settled_counts_as_well(bench: Bench) -> None:
    """The manager's patience has begun with the stop."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    bench.engine.begun.add("t1")
    gate = bench.engine.hold("t1")
    bench.assign("t1")
    await until(lambda: bool(bench.engine.attempts))
    await change(bench, target="STOPPED")
    await bench.clock.advance(40.0)
    gate.set()
    await bench.settle()
    await bench.clock.advance(8.5)
    await until(lambda: "STOPPED" in bench.manager.states("t1"))
    assert "given up after" in str(causes(bench)[-1])


async def test_a_paused_task_has_all_the_time_that_a_start_has(bench: Bench) -> None:
    """Nobody loses patience with it: its owner keeps it."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await bench.settle()
    await bench.clock.advance(2 * SETTINGS.rebalance_timeout_ms / 1000)
    bench.engine.unsettled["t1"].set()
    await until(lambda: bool(bench.engine.settled))
    assert causes(bench)[-1] is None


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
@pytest.mark.parametrize("turns", range(6))
async def test_a_settling_that_was_given_up_is_not_one_that_is_done(
    turns: int, target: str, bench: Bench
) -> None:
    """Whoever resumes a task and stops it again while it is being given up finds it settled all the same."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    grant(bench, target=target, token=5)
    bench.assign("t1")
    await bench.settle()
    life = bench.runner._ownership.get("t1")
    assert life is not None
    life.desired.follow(read_grant(granted("t1", token=5, target="RUNNING"), life.desired.grant))
    await settle(turns)
    life.desired.follow(read_grant(granted("t1", token=5, target=target), life.desired.grant))
    await bench.settle()
    assert bench.engine.started or "STOPPED" not in bench.manager.states("t1")
    bench.engine.unsettled["t1"].set()
    await until(lambda: bool(bench.engine.settled or bench.engine.started))
    await until(lambda: target in bench.manager.states("t1"))


@pytest.mark.parametrize("before", ["PAUSED", "RUNNING"])
async def test_a_task_that_names_another_sink_is_settled_there(before: str, bench: Bench) -> None:
    """A fence is one sink's."""
    one, other = (
        {"format": "sql", "options": {"url": f"sqlite:///{n}.db", "table": "t"}} for n in ("x", "y")
    )
    grant(bench, target=before, token=5, sink=one)
    bench.assign("t1")
    await until(lambda: bool(bench.engine.settled or bench.engine.started))
    await change(bench, target="PAUSED", token=5, sink=one)
    await change(bench, target="PAUSED", token=5, version=2, sink=other)
    await change(bench, target="STOPPED", token=5, version=2, sink=other)
    await until(lambda: "STOPPED" in bench.manager.states("t1"))
    sinks = [spec.definition.sink for spec in bench.engine.settled]
    assert [sink.options["url"] for sink in sinks if sink is not None][-1] == "sqlite:///y.db"


async def test_a_paused_task_is_settled_as_soon_as_its_sink_answers(bench: Bench) -> None:
    """It stays with its owner, so nobody else will ever be asked."""
    bench.engine.broken["t1"] = "no such host"
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await until(lambda: causes(bench)[-1:] == ["no such host"])
    del bench.engine.broken["t1"]
    await bench.clock.advance(2 * AGAIN.first_s)
    await until(lambda: causes(bench)[-1] is None)
    assert [spec.task for spec in bench.engine.settled] == ["t1"]
    assert bench.manager.states("t1") == ["PAUSED"]


async def test_a_paused_task_whose_sink_never_answers_can_be_resumed(bench: Bench) -> None:
    """Between two tries it is no less awake than during one."""
    bench.engine.broken["t1"] = "no such host"
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await until(lambda: causes(bench)[-1:] == ["no such host"])
    del bench.engine.broken["t1"]
    await change(bench)
    await until(lambda: bench.engine.running == {"t1"})
    assert bench.engine.settled == []


async def test_a_paused_task_is_paused_while_it_is_settled(bench: Bench) -> None:
    """Nothing of it is being started."""
    bench.engine.unsettled["t1"] = asyncio.Event()
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await until(lambda: bench.manager.states("t1") == ["PAUSED"])
    bench.engine.unsettled["t1"].set()
    await until(lambda: bool(bench.engine.settled))
    assert bench.manager.states("t1") == ["PAUSED"]


@pytest.mark.parametrize("target", ["STOPPED", "PAUSED"])
async def test_a_surprise_of_a_sink_is_told_as_any_trouble_is(target: str, bench: Bench) -> None:
    """It harms this task only, and does not end in silence."""
    bench.engine.surprise = RuntimeError("a driver's own")
    grant(bench, target=target)
    bench.assign("t1")
    await until(lambda: causes(bench)[-1:] not in ([], [None]))
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, "RuntimeError: a driver's own" in str(last.cause)) == (target, True)


@pytest.mark.parametrize("why", ["permanent", "unreadable"])
async def test_what_no_other_try_would_change_is_not_tried_again(why: str, bench: Bench) -> None:
    """Another definition is another try."""
    bench.engine.broken["t1"] = "no such table"
    bench.engine.permanent.add("t1")
    grant(bench, target="PAUSED", **({"sinc": {}} if why == "unreadable" else {}))
    bench.assign("t1")
    await until(lambda: causes(bench)[-1:] not in ([], [None]))
    del bench.engine.broken["t1"]
    await bench.clock.advance(10 * AGAIN.limit_s)
    await bench.settle()
    assert bench.engine.settled == []
