from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from protocol.errors import ErrorCode
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
)
from tests.fakes.manager import accept_all, failure, grant_all, granted
from tests.fakes.turns import until
from tests.unit.worker.tasks.test_unfenced import FENCED
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


def stale(request: ReportRequest) -> TaskErrorsResponse:
    """Every token is somebody else's by now."""
    return TaskErrorsResponse(tasks={each.task: ErrorCode.STALE_TOKEN.name for each in request.tasks})


async def test_lost_tasks_are_stopped_at_once_and_not_released(bench: Bench) -> None:
    """They belong to somebody else; from this moment on the worker claims to own none."""
    bench.engine.slow.update({"t1", "t2"})
    queries = await bench.run("t1", "t2")
    bench.runner.lose("ILLEGAL_GENERATION")
    assert bench.runner.owned() == {}
    await until(lambda: bench.engine.running == set())
    assert [query.stops for query in queries] == [[0.0], [0.0]]
    await bench.clock.advance(5)
    assert bench.released == {}


async def test_an_orderly_stop_under_way_is_cut_short_by_a_loss(bench: Bench) -> None:
    """The batch in flight gets no more time, and the release is not sent."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    bench.assign(generation=2)
    await bench.settle()
    bench.runner.lose("the lease ran out")
    await until(lambda: not query.is_running)
    assert query.stops == [30.0, 0.0]
    await bench.settle()
    assert bench.released == {}


async def test_a_release_under_way_is_not_repeated_after_a_loss(bench: Bench) -> None:
    """The token is not the worker's to give any more."""
    await bench.run("t1")
    bench.manager.no_rule(ReleaseRequest)
    bench.assign(generation=2)
    call = await bench.manager.next(ReleaseRequest)
    bench.runner.lose("ILLEGAL_GENERATION")
    call.answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.clock.advance(5)
    assert len(bench.manager.asked(ReleaseRequest)) == 1


async def test_a_claim_under_way_when_all_is_lost_is_given_up(bench: Bench) -> None:
    """It was asked by a member that is no more."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    call = await bench.manager.next(ClaimRequest)
    bench.runner.lose("UNKNOWN_MEMBER_ID")
    await bench.settle()
    assert call.is_given_up
    bench.grants(grant_all(1))
    bench.assign("t2", generation=2)
    await until(lambda: bench.engine.running == {"t2"})
    assert bench.released == {}


async def test_a_start_that_fails_when_all_is_lost_is_no_news(bench: Bench) -> None:
    """The engine died while the query was on its way up: nobody is told of a restart that never comes."""
    gate = bench.engine.hold("t1")
    bench.engine.broken["t1"] = "connection refused"
    bench.assign("t1")
    await bench.settle()
    with capture_logs() as logs:
        bench.runner.lose("the engine died")
        gate.set()
        await bench.settle()
    assert [entry for entry in logs if entry["event"] == "task changed state"] == []


async def test_a_task_won_back_starts_when_its_old_start_is_called_back(bench: Bench) -> None:
    """One process never runs two queries of a task side by side, and starts nothing that was lost."""
    gate = bench.engine.hold("t1")
    bench.assign("t1")
    await bench.settle()
    bench.runner.lose("ILLEGAL_GENERATION")
    bench.grants(grant_all(2))
    bench.assign("t1", generation=2)
    await bench.settle()
    assert bench.runner.owned() == {"t1": 2}
    assert bench.engine.started == []
    gate.set()
    await until(lambda: [query.spec.token for query in bench.engine.queries("t1")] == [2])
    assert [spec.token for spec in bench.engine.attempts] == [1, 2]
    assert bench.engine.query("t1").is_running


async def test_a_task_lost_and_won_back_keeps_its_token_if_the_manager_says_so(bench: Bench) -> None:
    """A claim of what is still owned returns the same token; it counts although it was had before."""
    await bench.run("t1")
    bench.runner.lose("the lease ran out")
    bench.assign("t1", generation=2)
    await until(lambda: len(bench.engine.queries("t1")) == 2)
    assert bench.runner.owned() == {"t1": 1}


async def test_tokens_of_another_manager_may_start_anew(bench: Bench) -> None:
    """Its database was lost: what was given back before says nothing of the tokens it counts from one."""
    bench.grants(grant_all(9))
    await bench.run("t1")
    bench.assign(generation=2)
    await until(lambda: bench.released == {"t1": 9})
    bench.runner.lose("UNKNOWN_MEMBER_ID")
    bench.grants(grant_all(1))
    bench.assign("t1", member="worker-2")
    await until(lambda: bench.engine.query("t1").spec.token == 1)


async def test_a_task_that_is_taken_away_while_it_is_let_go_is_cut_at_once(bench: Bench) -> None:
    """No claim speaks of what is let go, so a heartbeat with news has it reported: its token is stale."""
    bench.engine.slow.add("t1")
    query, other = await bench.run("t1", "t2")
    bench.assign("t2", generation=2)
    await bench.settle()
    bench.manager.rule(ReportRequest, stale)
    before = len(bench.manager.reports("t2"))
    bench.refresh()
    await bench.settle()
    assert query.stops == [30.0, 0.0]
    assert bench.runner.owned() == {"t2": 1}
    assert other.is_running
    assert len(bench.manager.reports("t2")) == before
    assert bench.released == {}


async def test_a_stale_token_stops_that_query_at_once(bench: Bench) -> None:
    """And no other; a task that is no longer assigned is not asked for again."""
    query, other = await bench.run("t1", "t2")
    bench.grants(lambda _: None)
    query.advance(1)
    bench.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(
            tasks={
                each.task: (ErrorCode.STALE_TOKEN if each.task == "t1" else ErrorCode.NONE).name
                for each in request.tasks
            }
        ),
    )
    await bench.clock.advance(1)
    await until(lambda: bench.engine.running == {"t2"})
    assert query.stops == [0.0]
    assert other.stops == []
    assert bench.released == {}


async def test_a_stale_task_that_is_still_assigned_is_claimed_afresh(bench: Bench) -> None:
    """Should it be ours by right, the claim brings the token under which it is."""
    (query,) = await bench.run("t1")
    bench.grants(grant_all(2))
    query.advance(1)
    bench.manager.rule(
        ReportRequest, lambda request: stale(request) if request.tasks[0].token == 1 else accept_all(request)
    )
    await bench.clock.advance(1)
    await until(lambda: bench.engine.query("t1").spec.token == 2)
    assert not query.is_running


async def test_a_higher_token_restarts_the_query_under_it(bench: Bench) -> None:
    """Under the old one its sink would refuse it."""
    await bench.run("t1")
    bench.grants(grant_all(2))
    bench.assign("t1", generation=2)
    await until(lambda: bench.engine.query("t1").spec.token == 2)
    assert bench.engine.queries("t1")[0].is_running is False


async def test_a_report_of_an_old_token_says_nothing_of_the_new_one(bench: Bench) -> None:
    """The refusal was on its way while the token grew."""
    (query,) = await bench.run("t1")
    bench.manager.no_rule(ReportRequest)
    query.advance(1)
    await bench.clock.advance(1)
    call = await bench.manager.next(ReportRequest)
    bench.grants(grant_all(2))
    bench.assign("t1", generation=2)
    await until(lambda: bench.engine.query("t1").spec.token == 2)
    call.answer(stale(call.request))
    await bench.settle()
    assert bench.engine.query("t1").is_running
    assert len(bench.engine.queries("t1")) == 2


async def test_a_report_of_a_deleted_task_ends_it(bench: Bench) -> None:
    """UNKNOWN_TASK: nobody wants it any more."""
    (query,) = await bench.run("t1")
    bench.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(
            tasks={each.task: ErrorCode.UNKNOWN_TASK.name for each in request.tasks}
        ),
    )
    query.advance(1)
    await bench.clock.advance(1)
    await until(lambda: not query.is_running)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION]
)
async def test_reports_and_releases_tell_the_membership_what_it_must_know(
    code: ErrorCode, bench: Bench
) -> None:
    """Whichever request hears of it first."""
    (query,) = await bench.run("t1")
    bench.manager.rule(ReportRequest, lambda _: failure(code))
    query.advance(1)
    await bench.clock.advance(1)
    await until(lambda: bench.trouble)
    assert (bench.trouble[0].asked, bench.trouble[0].failure.code) == (RequestKind.REPORT, code)


async def test_a_report_that_makes_no_sense_to_the_manager_costs_no_task(bench: Bench) -> None:
    """A bug in one place must not start a rebalance each second."""
    bench.grants(lambda request: ClaimResponse(granted=tuple(granted(t, **FENCED) for t in request.tasks)))
    (query,) = await bench.run("t1")
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.INVALID_REQUEST))
    query.advance(1)
    await bench.clock.advance(10)
    assert bench.trouble == []
    assert query.is_running


async def test_letting_go_stops_in_order_and_releases_all(bench: Bench) -> None:
    """Before an eager join, and before leaving."""
    bench.engine.slow.add("t1")
    query, _ = await bench.run("t1", "t2")
    done: list[bool] = []

    async def let_go() -> None:
        await bench.runner.let_go(10)
        done.append(True)

    bench.spawn(let_go())
    await until(lambda: bench.released == {"t2": 1})
    assert done == []
    query.finish_batch()
    await until(lambda: done)
    assert bench.released == {"t1": 1, "t2": 1}
    assert bench.runner.owned() == {}


async def test_letting_go_ends_when_its_time_is_up(bench: Bench) -> None:
    """What is too slow is cut, and not released: the leave, or the session's end, frees it."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    letting_go = bench.spawn(bench.runner.let_go(10))
    await bench.clock.advance(9.9)
    assert not letting_go.done()
    await bench.clock.advance(0.1)
    assert not await letting_go
    await bench.runner.come_to_rest(1)
    assert query.stops == [30.0, 0.0]
    assert bench.released == {}


async def test_letting_go_says_that_nothing_runs_any_more(bench: Bench) -> None:
    """What was cut before counts, too: it may be on its way down still."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    letting_go = bench.spawn(bench.runner.let_go(10))
    await bench.settle()
    query.finish_batch()
    assert await letting_go


async def test_a_start_that_cannot_be_called_back_still_runs(bench: Bench) -> None:
    """Cut or not, it may become a query yet: the worker that ends must not vouch for it."""
    gate = bench.engine.hold("t1")
    bench.engine.begun.add("t1")
    bench.assign("t1")
    await bench.settle()
    letting_go = bench.spawn(bench.runner.let_go(35, for_good=True))
    await bench.clock.advance(35)
    assert not await letting_go
    assert bench.released == {}
    gate.set()
    await until(lambda: not bench.runner._running)


@pytest.mark.parametrize("for_good", [True, False])
async def test_a_worker_that_ends_waits_for_no_manager_when_all_are_gone(
    bench: Bench, *, for_good: bool
) -> None:
    """Its queries have stopped; before an eager join the release is waited for, whoever comes back."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    bench.is_alone = True
    bench.manager.rule(ReleaseRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    letting_go = bench.spawn(bench.runner.let_go(10, for_good=for_good))
    await bench.clock.advance(5)
    assert not letting_go.done()
    query.finish_batch()
    await bench.settle()
    assert letting_go.done() is for_good
    assert query.stops == [30.0]


async def test_a_worker_that_ends_waits_for_a_manager_that_is_out_of_reach(bench: Bench) -> None:
    """It may be back any moment, and with a release the tasks move at once."""
    await bench.run("t1")
    bench.manager.rule(ReleaseRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    letting_go = bench.spawn(bench.runner.let_go(10, for_good=True))
    await bench.clock.advance(5)
    assert not letting_go.done()
    bench.is_alone = True
    await bench.clock.advance(2)
    assert letting_go.done()


async def test_letting_go_reports_at_once(bench: Bench) -> None:
    """Heartbeats have ended; the reports keep the session meanwhile."""
    bench.engine.slow.add("t1")
    await bench.run("t1")
    before = len(bench.manager.asked(ReportRequest))
    bench.spawn(bench.runner.let_go(10))
    await until(lambda: len(bench.manager.asked(ReportRequest)) > before)


async def test_coming_to_rest_has_an_end(bench: Bench) -> None:
    """A start that hangs does not keep a worker from exiting."""
    bench.engine.hold("t1")
    bench.assign("t1")
    await bench.settle()
    bench.runner.lose("the end")
    resting = bench.spawn(bench.runner.come_to_rest(5))
    await bench.clock.advance(5)
    await resting
