"""Tasks without a fence run only for as long as the manager confirms their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse, ReportRequest
from protocol.states import TaskState
from tests.fakes.manager import accept_all, failure, granted
from tests.fakes.turns import until
from tests.unit.worker.tasks.bench import SETTINGS, Bench
from worker.session_lease import lease_s, over_s

if TYPE_CHECKING:
    from collections.abc import Callable

FENCED: dict[str, Any] = {"sink": {"format": "sql", "options": {"url": "sqlite:///o.db", "table": "o"}}}
LEASE_S = lease_s(SETTINGS.session_timeout_ms)
OVER_S = over_s(SETTINGS.session_timeout_ms)
A_WHILE_S = LEASE_S / 10


def grant_all(**changes: Any) -> Callable[[ClaimRequest], ClaimResponse]:
    """Grants everything under the first token; `changes` are keys of the definition."""
    return lambda request: ClaimResponse(granted=tuple(granted(task, **changes) for task in request.tasks))


async def running(bench: Bench) -> Any:
    """The query of `t1`, no report of which is accepted from now on."""
    (query,) = await bench.run("t1")
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.manager.no_rule(ClaimRequest)
    return query


async def test_a_token_that_nobody_confirms_is_given_up(bench: Bench) -> None:
    """The task may be another worker's, and its sink would take rows from both; a claim finds out."""
    query = await running(bench)
    await bench.clock.advance(LEASE_S - A_WHILE_S)
    assert query.is_running
    await bench.clock.advance(2 * A_WHILE_S)
    assert query.stops == [0.0]
    assert bench.released == {}
    assert (await bench.manager.next(ClaimRequest)).request.tasks == ("t1",)


async def test_accepted_reports_confirm_a_token(bench: Bench) -> None:
    """One every third of a session is sent in any case."""
    (query,) = await bench.run("t1")
    await bench.clock.advance(3 * LEASE_S)
    assert query.stops == []


async def test_claims_confirm_a_token(bench: Bench) -> None:
    """Each grants what is owned once more."""
    query = await running(bench)
    bench.grants(grant_all())
    for _ in range(4):
        await bench.clock.advance(LEASE_S / 2)
        bench.refresh()
        await bench.settle()
    assert query.stops == []


async def test_a_fenced_task_goes_on_unconfirmed(bench: Bench) -> None:
    """Its sink refuses it when it is another worker's; until then every batch counts."""
    bench.grants(grant_all(**FENCED))
    query = await running(bench)
    await bench.clock.advance(2 * LEASE_S)
    assert query.stops == []


async def test_a_task_that_gets_a_sink_without_a_fence_is_to_be_confirmed(bench: Bench) -> None:
    """From the grant on that tells of it."""
    bench.grants(grant_all(**FENCED))
    await running(bench)
    bench.grants(grant_all())
    bench.refresh()
    await bench.settle()
    bench.manager.no_rule(ClaimRequest)
    await bench.clock.advance(LEASE_S + A_WHILE_S)
    assert [query.stops for query in bench.engine.queries("t1")] == [[30.0], [0.0]]


@pytest.mark.parametrize(("document", "starts"), [({}, 0), (FENCED, 1)])
async def test_an_answer_that_took_too_long_grants_nothing(
    document: dict[str, Any], starts: int, bench: Bench
) -> None:
    """The session may have ended since it was given, and another worker may run the task."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    late = await bench.manager.next(ClaimRequest)
    bench.clock.freeze(LEASE_S)
    late.answer(ClaimResponse(granted=(granted("t1", **document),)))
    await bench.settle()
    assert len(bench.engine.queries("t1")) == starts
    assert len(bench.claimed) == 2 - starts


async def late(bench: Bench) -> None:
    """The next claim is answered when its lease is over."""
    call = await bench.manager.next(ClaimRequest)
    bench.clock.freeze(LEASE_S)
    call.answer(ClaimResponse(granted=(granted("t1", token=4),)))
    await bench.settle()


async def test_claims_that_are_always_answered_too_late_are_sent_less_and_less_often(bench: Bench) -> None:
    """At once, then after 1, 2, 4 s and so on up to a minute; one answered in time begins the task."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    await late(bench)
    for pause_s in (1, 2, 4, 8, 16, 32, 60, 60):
        await late(bench)
        claimed = len(bench.claimed)
        await bench.clock.advance(pause_s - 0.1)
        assert len(bench.claimed) == claimed
        await bench.clock.advance(0.1)
        assert len(bench.claimed) == claimed + 1
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(granted=(granted("t1", token=4),)))
    await until(lambda: bench.engine.running == {"t1"})


async def test_whoever_looks_at_a_task_that_is_granted_too_late_sees_why_it_does_not_start(
    bench: Bench,
) -> None:
    """In its state, with both times, and in the worker's log; until it starts."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    with capture_logs() as logs:
        await late(bench)
        await late(bench)
    told = bench.manager.reports("t1")
    assert [(report.token, report.state) for report in told] == [(4, TaskState.STARTING)] * 2
    assert told[-1].cause
    for words in (f"took {LEASE_S:.1f} s", "--session-timeout-ms", "claimed 2 times"):
        assert words in told[-1].cause
    lines = [line for line in logs if line["event"] == "claim was answered too late, it is sent again"]
    assert [(line["tries"], line["again_in_s"]) for line in lines] == [(1, 0), (2, 1)]
    await bench.clock.advance(1)
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(granted=(granted("t1", token=4),)))
    await until(lambda: bench.engine.running == {"t1"})
    await bench.settle()
    assert bench.manager.reports("t1")[-1].cause is None


async def test_what_is_assigned_no_more_is_not_asked_for_again(bench: Bench) -> None:
    """The pause was for it alone."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    await late(bench)
    await late(bench)
    bench.assign(generation=2)
    claimed = len(bench.claimed)
    await bench.clock.advance(60)
    assert len(bench.claimed) == claimed


async def test_a_claim_counts_from_the_try_that_was_answered(bench: Bench) -> None:
    """The manager was away for longer than any lease."""
    bench.manager.rule(ClaimRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.assign("t1")
    await bench.clock.advance(2 * LEASE_S)
    bench.grants(grant_all())
    await bench.clock.advance(2)
    await until(lambda: bench.engine.running == {"t1"})
    bench.manager.rule(ReportRequest, accept_all)
    await bench.clock.advance(LEASE_S)
    assert bench.engine.query("t1").stops == []


async def test_a_late_answer_with_an_older_token_takes_no_token_off_the_watch(bench: Bench) -> None:
    """The younger one has been granted meanwhile, and is given up when nobody confirms it."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    late = await bench.manager.next(ClaimRequest)
    bench.refresh()
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(granted=(granted("t1", token=6),)))
    await until(lambda: bench.engine.running == {"t1"})
    late.answer(ClaimResponse(granted=(granted("t1", token=5),)))
    await bench.settle()
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.clock.advance(LEASE_S + A_WHILE_S)
    assert bench.engine.query("t1").stops == [0.0]


async def test_a_query_without_a_fence_is_confirmed_until_it_is_over(bench: Bench) -> None:
    """Though its definition says by now that the next one writes through a fence."""
    bench.grants(grant_all())
    bench.engine.slow.add("t1")
    query = await running(bench)
    bench.grants(grant_all(**FENCED))
    bench.refresh()
    await bench.settle()
    assert query.stops == [30.0]
    bench.manager.no_rule(ClaimRequest)
    await bench.clock.advance(LEASE_S + A_WHILE_S)
    assert query.stops == [30.0, 0.0]


async def test_a_report_whose_answer_is_lost_holds_up_no_other(bench: Bench) -> None:
    """One of a second later confirms the tokens, long before the first one is given up."""
    (query,) = await bench.run("t1")
    bench.manager.no_rule(ReportRequest)
    query.advance(1)
    await bench.clock.advance(1)
    await bench.manager.next(ReportRequest)
    bench.manager.rule(ReportRequest, accept_all)
    await bench.clock.advance(2 * LEASE_S)
    assert query.stops == []


async def test_a_query_that_does_not_stop_is_overdue(bench: Bench) -> None:
    """Others are given its task a little later, and its sink would take rows from both."""
    query = await running(bench)
    query.hold_stops()
    await bench.clock.advance(OVER_S - A_WHILE_S)
    assert (query.stops, bench.watchdog.overdue()) == ([0.0], ())
    await bench.clock.advance(2 * A_WHILE_S)
    assert bench.watchdog.overdue() == ("t1",)
    assert bench.watchdog.overdue() == ()


async def test_a_query_that_has_stopped_is_not_overdue(bench: Bench) -> None:
    """Nor is one that ended by itself and waits for its next try."""
    query = await running(bench)
    query.end("it failed")
    await bench.settle()
    await bench.clock.advance(2 * OVER_S)
    assert bench.watchdog.overdue() == ()


async def test_a_confirmed_query_is_never_overdue(bench: Bench) -> None:
    """However long it takes to stop: nobody else is given the task meanwhile."""
    bench.engine.slow.add("t1")
    await bench.run("t1")
    bench.assign(generation=2)
    await bench.clock.advance(2 * OVER_S)
    assert bench.watchdog.overdue() == ()


async def test_a_fenced_query_is_never_overdue(bench: Bench) -> None:
    """Its sink refuses it: that is worth nobody's process."""
    bench.grants(grant_all(**FENCED))
    query = await running(bench)
    query.hold_stops()
    bench.runner.lose("the lease has run out")
    await bench.clock.advance(2 * OVER_S)
    assert bench.watchdog.overdue() == ()


@pytest.mark.parametrize("is_begun", [True, False])
async def test_a_begun_start_that_hangs_is_overdue(bench: Bench, *, is_begun: bool) -> None:
    """Spark may make a query of it at any time; one that was not begun can be called back."""
    bench.engine.hold("t1")
    bench.engine.begun |= {"t1"} if is_begun else set()
    bench.assign("t1")
    await bench.settle()
    bench.runner.lose("the lease has run out")
    await bench.clock.advance(OVER_S)
    assert bench.watchdog.overdue() == (("t1",) if is_begun else ())


async def test_a_new_token_gives_the_query_of_an_old_one_no_more_time(bench: Bench) -> None:
    """The worker has joined again, and is granted the task while its former query will not stop."""
    query = await running(bench)
    query.hold_stops()
    bench.runner.lose("the lease has run out")
    await bench.clock.advance(A_WHILE_S)
    bench.grants(grant_all(token=2))
    bench.manager.rule(ReportRequest, accept_all)
    bench.assign("t1", generation=2)
    await bench.clock.advance(OVER_S)
    assert bench.watchdog.overdue() == ("t1",)


async def test_a_query_without_a_fence_is_not_given_back_before_it_is_over(bench: Bench) -> None:
    """Whatever goes wrong with its stop: nothing else would keep the next owner's apart from it."""
    query, _ = await bench.run("t1", "t2")
    query.stop_surprise = ZeroDivisionError("division by zero")
    bench.assign("t2", generation=2)
    await bench.settle()
    assert bench.released == {}
    query.end("at last")
    await until(lambda: bench.released == {"t1": 1})


async def test_nothing_without_a_fence_begins_under_a_token_of_long_ago(bench: Bench) -> None:
    """The process was frozen between two tries: it has to hear first that the task is its own still."""
    query = await running(bench)
    query.end("it failed")
    await bench.settle()
    bench.clock.freeze(2 * OVER_S)
    await bench.clock.advance(A_WHILE_S)
    assert len(bench.engine.queries("t1")) == 1
    assert bench.watchdog.overdue() == ()


async def test_an_answer_that_was_overtaken_takes_nothing_back(bench: Bench) -> None:
    """A claim's answer that comes after that to a later report makes the token's time no shorter."""
    (query,) = await bench.run("t1")
    bench.manager.no_rule(ClaimRequest)
    bench.refresh()
    late = await bench.manager.next(ClaimRequest)
    await bench.clock.advance(LEASE_S / 2)
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    late.answer(ClaimResponse(granted=(granted("t1"),)))
    await bench.clock.advance(LEASE_S / 2 + A_WHILE_S)
    assert query.stops == []
    await bench.clock.advance(LEASE_S / 2)
    assert query.stops == [0.0]


@pytest.mark.parametrize("restarts", [0, 1])
async def test_a_task_of_which_nothing_runs_is_never_overdue(restarts: int, bench: Bench) -> None:
    """It has failed and rests, or waits to be started again: there is nothing to end a worker for."""
    bench.grants(grant_all(restart={"max_restarts": restarts}))
    query = await running(bench)
    query.end("it failed")
    await bench.settle()
    bench.clock.freeze(2 * OVER_S)
    assert bench.watchdog.overdue() == ()


async def test_a_query_that_is_started_again_is_watched_again(bench: Bench) -> None:
    """From its start to its end, as the first one was."""
    (query,) = await bench.run("t1")
    query.end("it failed")
    await bench.clock.advance(OVER_S)
    assert len(bench.engine.queries("t1")) == 2
    (await running(bench)).hold_stops()
    await bench.clock.advance(OVER_S)
    assert bench.watchdog.overdue() == ("t1",)
