"""Tasks without a fence run only for as long as the manager confirms their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse, ReportRequest
from tests.fakes.manager import accept_all, failure, granted
from tests.fakes.turns import until
from tests.unit.worker.keeper.bench import SETTINGS, Bench
from worker.lease import lease_s

if TYPE_CHECKING:
    from collections.abc import Callable

FENCED: dict[str, Any] = {"sink": {"format": "sql", "options": {"url": "sqlite:///o.db", "table": "o"}}}
LEASE_S = lease_s(SETTINGS.session_timeout_ms)
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
    assert [query.stops for query in bench.executor.queries("t1")] == [[30.0], [0.0]]


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
    assert len(bench.executor.queries("t1")) == starts
    assert len(bench.claimed) == 2 - starts


async def test_a_claim_counts_from_the_try_that_was_answered(bench: Bench) -> None:
    """The manager was away for longer than any lease."""
    bench.manager.rule(ClaimRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.assign("t1")
    await bench.clock.advance(2 * LEASE_S)
    bench.grants(grant_all())
    await bench.clock.advance(2)
    await until(lambda: bench.executor.running == {"t1"})
    bench.manager.rule(ReportRequest, accept_all)
    await bench.clock.advance(LEASE_S)
    assert bench.executor.query("t1").stops == []


async def test_a_late_answer_with_an_older_token_takes_no_token_off_the_watch(bench: Bench) -> None:
    """The younger one has been granted meanwhile, and is given up when nobody confirms it."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    late = await bench.manager.next(ClaimRequest)
    bench.refresh()
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(granted=(granted("t1", token=6),)))
    await until(lambda: bench.executor.running == {"t1"})
    late.answer(ClaimResponse(granted=(granted("t1", token=5),)))
    await bench.settle()
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.clock.advance(LEASE_S + A_WHILE_S)
    assert bench.executor.query("t1").stops == [0.0]


async def test_a_query_without_a_fence_is_confirmed_until_it_is_over(bench: Bench) -> None:
    """Though its definition says by now that the next one writes through a fence."""
    bench.grants(grant_all())
    bench.executor.slow.add("t1")
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
