from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from protocol.messages.ownership import ClaimResponse, PendingTask
from protocol.states import TaskState
from tests.fakes.turns import until
from worker.query_engine import Totals
from worker.tasks.first_starts import PATIENCE_S
from worker.tasks.runner import LOOK_S
from worker.tasks.task_status import QUIET_S

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench
    from worker.tasks.task_status import TaskSnapshot


@pytest.fixture
def seen(bench: Bench) -> View:
    return View(bench)


class View:
    """The only task of a worker, as those who watch it see it now."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __call__(self) -> TaskSnapshot:
        [view] = self._bench.runner.views()
        return view


async def test_what_several_queries_did_adds_up(bench: Bench, seen: View) -> None:
    """A failure and a restart later the rows of before still count, and the restart does."""
    await bench.run("t1")
    bench.engine.query("t1").advance(0, rows=100, batch_ms=20)
    bench.engine.query("t1").advance(1, rows=50, batch_ms=10)
    assert seen().totals == Totals(2, 150, 30)
    bench.engine.query("t1").end("boom")
    await bench.settle()
    assert (seen().state, seen().restarts, seen().totals.rows) == (TaskState.RESTARTING, 1, 150)
    await bench.clock.advance(5)
    bench.engine.query("t1").advance(2, rows=7, batch_ms=1)
    assert seen().totals == Totals(3, 157, 31)
    assert (seen().state, seen().batch_id) == (TaskState.RUNNING, 2)


async def test_idle_counts_from_the_last_batch_or_from_the_start(bench: Bench, seen: View) -> None:
    """A query that never finishes its first batch is as idle as one that stopped finishing them."""
    await bench.run("t1")
    await bench.clock.advance(30)
    assert seen().idle_s == pytest.approx(30, abs=1)
    bench.engine.query("t1").advance(0)
    await bench.clock.advance(10)
    assert seen().idle_s == pytest.approx(10, abs=1)
    bench.engine.query("t1").end("boom")
    await bench.settle()
    assert seen().idle_s is None


async def test_whether_there_is_work_is_the_querys_to_say(bench: Bench, seen: View) -> None:
    """And nobody's, while there is no query."""
    await bench.run("t1")
    query = bench.engine.query("t1")
    assert not seen().has_work
    query.has_work = True
    assert seen().has_work
    query.end("boom")
    await bench.settle()
    assert not seen().has_work


async def test_a_task_that_moved_away_is_not_seen_any_more(bench: Bench) -> None:
    """Its series end here, and go on where it is."""
    await bench.run("t1")
    bench.assign()
    await bench.clock.advance(1)
    assert bench.runner.views() == ()


async def test_how_far_the_task_had_come_is_reported_beside_its_own_batches(bench: Bench) -> None:
    """A query that has finished nothing tells what its checkpoint knows, and not as a batch of its own."""
    bench.engine.committed = 7
    await bench.run("t1")
    [*_, last] = bench.manager.reports("t1")
    assert (last.state, last.committed, last.batch_id) == (TaskState.RUNNING, 7, None)


async def test_why_a_query_stands_still_is_its_cause_while_it_runs(bench: Bench, seen: View) -> None:
    """It stays RUNNING: nothing has to be done about it, and the cause goes when it goes on."""
    await bench.run("t1")
    query = bench.engine.query("t1")
    query.trouble = "stands still since 09:00: no broker answers"
    await bench.clock.advance(1)
    report = bench.manager.reports("t1")[-1]
    assert (report.state, report.cause) == (TaskState.RUNNING, query.trouble)
    told = len(bench.manager.reports("t1"))
    await bench.clock.advance(1)
    assert len(bench.manager.reports("t1")) == told
    query.trouble = None
    await bench.clock.advance(1)
    assert (seen().state, bench.manager.reports("t1")[-1].cause) == (TaskState.RUNNING, None)
    query.trouble = "stands still since 09:10: no broker answers"
    query.end("TimeoutException")
    await bench.settle()
    assert (seen().state, seen().cause) == (TaskState.RESTARTING, "TimeoutException")


async def test_a_task_is_started_when_it_has_done_a_batch(bench: Bench) -> None:
    """Not when its query runs: the first batch takes longest. All that are assigned are waited for."""
    bench.assign("t1", "t2")
    started = asyncio.ensure_future(bench.runner.until_started())
    await until(lambda: bench.engine.running == {"t1", "t2"})
    for task in ("t1", "t2"):
        bench.engine.query(task).has_work = True
    await bench.clock.advance(5)
    bench.engine.query("t1").advance(0)
    await bench.clock.advance(5)
    assert not started.done()
    bench.engine.query("t2").advance(0)
    await bench.clock.advance(LOOK_S)
    assert started.done()


async def test_a_task_without_a_batch_to_do_is_started(bench: Bench) -> None:
    """It is idle for a while, or does not run: it failed, or waits for its restart."""
    idle, _ = await bench.run("t1", "t2")
    started = asyncio.ensure_future(bench.runner.until_started())
    await bench.clock.advance(QUIET_S - LOOK_S)
    assert not started.done()
    bench.engine.query("t2").end("boom")
    await bench.clock.advance(2 * LOOK_S)
    assert started.done()
    assert not idle.has_work


async def test_a_task_that_does_not_start_is_not_waited_for_for_long(bench: Bench) -> None:
    """As one whose former owner does not let go of it."""
    bench.grants(
        lambda request: ClaimResponse(
            granted=(), pending=tuple(PendingTask(task, "worker-2") for task in request.tasks), refused=()
        )
    )
    bench.assign("t1")
    started = asyncio.ensure_future(bench.runner.until_started())
    await bench.clock.advance(29)
    assert not started.done()
    assert bench.runner.starting() == ("t1",)
    await bench.clock.advance(1)
    assert started.done()
    assert bench.runner.starting() == ()


async def test_what_was_waited_for_is_not_waited_for_again(bench: Bench) -> None:
    """Else a task that never starts would keep the others for a while in every round."""
    await bench.run("t1", "t2")
    for task in ("t1", "t2"):
        bench.engine.query(task).has_work = True
    bench.engine.query("t1").advance(0)
    assert bench.runner.starting() == ("t2",)
    bench.engine.query("t1").end("boom")
    await bench.clock.advance(PATIENCE_S / 2)
    bench.engine.query("t1").has_work = True
    assert bench.runner.starting() == ("t2",)
    await bench.clock.advance(PATIENCE_S / 2)
    await bench.run("t1", "t2", "t3")
    assert bench.runner.starting() == ("t3",)
    bench.runner.lose("the generation is gone")
    assert bench.runner.starting() == ()
    bench.assign("t2")
    assert bench.runner.starting() == ("t2",)
