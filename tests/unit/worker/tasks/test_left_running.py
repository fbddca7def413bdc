"""A task moves away whose query can run on without its worker: it is the next owner's at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import ReleaseRequest, ReportRequest, TaskErrorsResponse
from tests.fakes.manager import accept_all, failure
from tests.unit.worker.tasks.bench import change, grant
from worker.tasks.query_run import HEIR_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.query_engine import FakeQuery
    from tests.unit.worker.tasks.bench import Bench


async def running(bench: Bench) -> FakeQuery:
    """A query at a server."""
    (query,) = await bench.run("t1")
    query.can_be_left = True
    return query


def refuse_all(code: ErrorCode) -> Callable[[Any], TaskErrorsResponse]:
    """Answers a report or a release with `code` for each of its tasks."""
    return lambda request: TaskErrorsResponse(tasks=dict.fromkeys(accept_all(request).tasks, code.value))


def told_running(bench: Bench) -> list[tuple[str, ...]]:
    """Of each release, which queries run on."""
    return [request.running for request in bench.manager.asked(ReleaseRequest)]


async def test_it_is_released_while_its_query_runs(bench: Bench) -> None:
    """The manager hears that it does; whoever takes it over ends it for this worker, which stops nothing."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    assert (bench.released, told_running(bench), bench.runner.owned()) == ({"t1": 1}, [("t1",)], {})
    assert (query.is_running, query.left_for, query.stops) == (True, [HEIR_S], [])
    query.heir.set_result(True)
    await bench.runner.come_to_rest(60)
    assert (query.is_running, query.stops) == (False, [])
    assert len(bench.manager.asked(ReleaseRequest)) == 1


async def test_what_nobody_takes_over_is_stopped_in_order(bench: Bench) -> None:
    """Nothing runs for nobody; it was released before, and is not released again."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    query.heir.set_result(False)
    await bench.settle()
    assert len(query.stops) == 1
    assert query.stops[0] > 0
    assert len(bench.manager.asked(ReleaseRequest)) == 1


async def test_a_release_that_fails_until_the_query_is_over_says_so(bench: Bench) -> None:
    """The manager was away: it hears of a query that has ended, as of any other."""
    query = await running(bench)
    heard = bench.manager._rules[ReleaseRequest]
    bench.manager.rule(ReleaseRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.assign(generation=2)
    await bench.settle()
    query.heir.set_result(False)
    await bench.settle()
    bench.manager.rule(ReleaseRequest, heard)
    await bench.clock.advance(10)
    assert told_running(bench)[-1] == ()
    assert (bench.released, bench.runner.owned()) == ({"t1": 1}, {})


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_worker_waits_for_its_heirs_before_it_ends(bench: Bench, *, is_taken: bool) -> None:
    """It owns nothing any more, and leaves when its queries are others', or are over."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    letting_go = bench.spawn(bench.runner.let_go(60, for_good=True))
    await bench.settle()
    assert (bench.runner.owned(), letting_go.done()) == ({}, False)
    query.heir.set_result(is_taken)
    assert await letting_go
    assert len(query.stops) == (not is_taken)


async def test_one_that_is_cut_is_stopped_at_once(bench: Bench) -> None:
    """The worker has lost all of its tasks before the manager has answered."""
    query = await running(bench)
    bench.manager.rule(ReleaseRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.assign(generation=2)
    await bench.settle()
    bench.runner.lose("its session has run out")
    await bench.settle()
    assert query.stops == [0.0]


async def test_a_worker_that_must_end_waits_for_no_heir(bench: Bench) -> None:
    """Its time is up: what was left running, and is nobody's yet, is stopped at once."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    letting_go = bench.spawn(bench.runner.let_go(5, for_good=True))
    await bench.settle()
    await bench.clock.advance(HEIR_S + 5)
    assert query.stops == [0.0]
    assert await letting_go is not None


async def test_the_wait_for_an_heir_takes_nothing_from_the_time_of_a_batch(bench: Bench) -> None:
    """A worker that ends waits for its heirs first, and has all of its time for a stop in order then."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    letting_go = bench.spawn(bench.runner.let_go(5, for_good=True))
    await bench.clock.advance(HEIR_S)
    assert query.stops == []
    query.heir.set_result(False)
    assert await letting_go
    assert query.stops[0] > 0


async def test_what_is_stopped_or_changed_is_stopped_in_order(bench: Bench) -> None:
    """Only a move leaves a query running."""
    query = await running(bench)
    await change(bench, target="STOPPED")
    assert (len(query.stops), query.left_for) == (1, [])


async def test_a_report_that_is_refused_before_the_release_is_answered_cuts_nothing(bench: Bench) -> None:
    """The manager has taken the release in, and says so of a report first: that was asked for."""
    query = await running(bench)
    bench.manager.rule(ReleaseRequest, lambda _: None)
    bench.manager.rule(ReportRequest, refuse_all(ErrorCode.STALE_TOKEN))
    bench.assign(generation=2)
    await bench.settle()
    bench.refresh()
    await bench.clock.advance(4)
    assert (query.stops, query.is_running, bench.runner.owned()) == ([], True, {})
    query.heir.set_result(False)
    await bench.settle()
    assert query.stops[0] > 0


async def test_one_that_comes_back_is_stopped_in_order_without_a_wait(bench: Bench) -> None:
    """The task is given to the same worker again: nobody else follows, so its query is stopped."""
    query = await running(bench)
    bench.assign(generation=2)
    await bench.settle()
    grant(bench, token=2)
    bench.assign("t1", generation=3)
    await bench.settle()
    assert (bench.runner.owned(), len(bench.engine.attempts)) == ({"t1": 2}, 2)
    assert (len(query.stops), query.stops[0] > 0) == (1, True)


async def test_a_task_that_is_gone_leaves_nothing_running(bench: Bench) -> None:
    """It was deleted: no owner will follow, so its query is stopped in order, and at once."""
    query = await running(bench)
    bench.manager.rule(ReleaseRequest, refuse_all(ErrorCode.UNKNOWN_TASK))
    bench.assign(generation=2)
    await bench.settle()
    assert (len(query.stops), query.is_running) == (1, False)
    assert query.stops[0] > 0


async def test_a_worker_that_lets_go_by_itself_leaves_nothing_running(bench: Bench) -> None:
    """Before an eager join, alone, or where it could not be drained: nobody is given its tasks until then."""
    query = await running(bench)
    assert await bench.runner.let_go(4)
    assert (query.left_for, len(query.stops)) == ([], 1)
