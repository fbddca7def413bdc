from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    PendingTask,
    RefusedTask,
    ReleaseRequest,
    ReportRequest,
)
from tests.fakes.manager import accept_all, failure, grant_all, granted
from tests.fakes.turns import until
from tests.unit.worker.tasks.bench import ME, Bench, grant
from tests.unit.worker.tasks.test_loss import stale
from worker.membership.events import Identity
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable


def pending(*names: str) -> Callable[[ClaimRequest], ClaimResponse]:
    """Grants everything but `names`, which somebody else still owns."""
    return lambda request: ClaimResponse(
        granted=tuple(granted(task) for task in request.tasks if task not in names),
        pending=tuple(PendingTask(task, "worker-2") for task in request.tasks if task in names),
    )


async def test_an_assignment_is_claimed_in_one_request(bench: Bench) -> None:
    """However many tasks there are, each starts under its token."""
    names = tuple(f"t{number:03}" for number in range(300))
    queries = await bench.run(*names)
    assert bench.claimed == [names]
    assert {query.spec.token for query in queries} == {1}
    assert bench.runner.owned() == dict.fromkeys(names, 1)


async def test_claims_name_the_generation(bench: Bench) -> None:
    """The manager fences by it."""
    bench.assign("t1", generation=5)
    await bench.settle()
    request = bench.manager.asked(ClaimRequest)[0]
    assert (request.member_id, request.generation_id, request.wait_ms) == (ME, 5, 3000)


async def test_a_task_that_does_not_move_is_not_touched(bench: Bench) -> None:
    """Through ten rebalances around it the query is the same, and was never told to stop."""
    (query,) = await bench.run("stays")
    for generation in range(2, 12):
        bench.assign("stays", f"t{generation}", generation=generation)
        await bench.settle()
    assert bench.engine.queries("stays") == [query]
    assert query.is_running
    assert query.stops == []


async def test_what_moves_away_is_stopped_and_then_released(bench: Bench) -> None:
    """The new owner must not start before the old query is gone."""
    bench.engine.slow.add("t1")
    (query, other) = await bench.run("t1", "t2")
    bench.assign("t2", generation=2)
    await bench.settle()
    assert query.stops == [30.0]
    assert bench.released == {}
    assert bench.runner.owned() == {"t1": 1, "t2": 1}
    query.finish_batch()
    await until(lambda: bench.released == {"t1": 1})
    await bench.settle()
    assert bench.runner.owned() == {"t2": 1}
    assert other.stops == []


async def test_a_slow_stop_delays_nobody(bench: Bench) -> None:
    """Another task is released, and a new one starts, while the slow one still finishes its batch."""
    bench.engine.slow.add("slow")
    await bench.run("slow", "quick")
    bench.assign("new", generation=2)
    await until(lambda: bench.released == {"quick": 1})
    await until(lambda: bench.engine.running == {"slow", "new"})


async def test_a_stop_that_goes_wrong_keeps_nobody_from_the_task(bench: Bench) -> None:
    """What may be left of the query is fenced once the next owner has its token."""
    grant(bench, sink={"format": "fenced_files", "options": {"path": "/out"}})
    query, _ = await bench.run("t1", "t2")
    query.stop_surprise = ZeroDivisionError("division by zero")
    bench.assign("t2", generation=2)
    await until(lambda: bench.released == {"t1": 1})


async def test_a_slow_start_delays_nobody(bench: Bench) -> None:
    """Its neighbours run while its start hangs."""
    gate = bench.engine.hold("slow")
    bench.assign("slow", "quick")
    await until(lambda: bench.engine.running == {"quick"})
    gate.set()
    await until(lambda: bench.engine.running == {"quick", "slow"})


async def test_a_task_taken_away_during_its_start_is_stopped_and_released(bench: Bench) -> None:
    """A query that the engine has begun cannot be called off: however long it takes, it is ended first."""
    gate = bench.engine.hold("t1")
    bench.engine.begun.add("t1")
    bench.assign("t1")
    await bench.settle()
    bench.assign(generation=2)
    await bench.clock.advance(600)
    assert bench.released == {}
    assert bench.runner.owned() == {"t1": 1}
    gate.set()
    await until(lambda: bench.released == {"t1": 1})
    assert bench.engine.running == set()


async def test_pending_tasks_are_claimed_until_they_are_granted(bench: Bench) -> None:
    """What is free runs at once; the rest is claimed alone, with a wait, and again."""
    bench.grants(pending("t2"))
    bench.assign("t1", "t2")
    await until(lambda: bench.engine.running == {"t1"})
    bench.manager.no_rule(ClaimRequest)
    await bench.clock.advance(1)
    call = await bench.manager.next(ClaimRequest)
    assert (call.request.tasks, call.request.wait_ms) == (("t2",), 3000)
    call.answer(ClaimResponse(granted=(granted("t2"),)))
    await until(lambda: bench.engine.running == {"t1", "t2"})


async def test_what_is_pending_beside_a_grant_is_claimed_again_at_once(bench: Bench) -> None:
    """The others let go one after the other: a pause between two grants would delay every rebalance."""
    bench.grants(pending("t2"))
    bench.assign("t1", "t2")
    await until(lambda: bench.claimed == [("t1", "t2"), ("t2",)])


async def test_claims_that_are_not_held_do_not_run_hot(bench: Bench) -> None:
    """A manager that says pending at once is asked about once a second, not without end."""
    bench.grants(pending("t1"))
    bench.assign("t1")
    await bench.clock.advance(10)
    assert 5 < len(bench.claimed) < 25


async def test_a_moved_task_given_back_is_claimed_after_its_release(bench: Bench) -> None:
    """Before, the grant would be of the very token that the release is about to give back."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    bench.assign(generation=2)
    bench.assign("t1", generation=3)
    await bench.settle()
    assert bench.claimed == [("t1",)]
    bench.grants(grant_all(2))
    query.finish_batch()
    await until(lambda: bench.engine.query("t1").spec.token == 2)
    assert bench.released == {"t1": 1}
    assert bench.claimed == [("t1",), ("t1",)]


@pytest.mark.parametrize("error", [ErrorCode.NOT_ASSIGNED, ErrorCode.UNKNOWN_TASK])
async def test_a_refused_claim_stops_the_query(error: ErrorCode, bench: Bench) -> None:
    """The task is gone or somebody else's; nobody claims it again."""
    await bench.run("t1", "t2")
    bench.grants(
        lambda request: ClaimResponse(
            granted=tuple(granted(task) for task in request.tasks if task != "t1"),
            refused=tuple(RefusedTask(task, error.name) for task in request.tasks if task == "t1"),
        )
    )
    bench.refresh()
    await until(lambda: bench.engine.running == {"t2"})
    bench.refresh()
    await bench.settle()
    assert bench.claimed[-1] == ("t2",)


async def test_a_query_whose_task_is_pending_runs_under_a_stale_token(bench: Bench) -> None:
    """Somebody else owns it by now: it is ended at once and not released."""
    (query,) = await bench.run("t1")
    bench.grants(pending("t1"))
    bench.refresh()
    await until(lambda: not query.is_running)
    assert query.stops == [0.0]
    assert bench.released == {}


@pytest.mark.parametrize(("told", "claims"), [(5, 1), (4, 2)])
async def test_a_change_is_claimed_again_only_if_the_claim_under_way_has_not_told_of_it(
    bench: Bench, told: int, claims: int
) -> None:
    """A rebalance brings a claim and, with the next heartbeat, a new revision; mostly the claim knew it."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    claim = await bench.manager.next(ClaimRequest)
    bench.runner.refresh(5)
    await bench.settle()
    assert len(bench.claimed) == 1
    bench.grants(grant_all())
    claim.answer(ClaimResponse(granted=(granted("t1"),), tasks_revision=told))
    await until(lambda: bench.engine.running == {"t1"})
    await bench.settle()
    assert len(bench.claimed) == claims


async def test_a_newer_claim_takes_the_place_of_a_waiting_one(bench: Bench) -> None:
    """The manager ends the older one's wait; that is no trouble, and nothing is lost by it."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    first = await bench.manager.next(ClaimRequest)
    bench.assign("t1", generation=2)
    second = await bench.manager.next(ClaimRequest)
    first.answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    second.answer(ClaimResponse(granted=(granted("t1"),)))
    await until(lambda: bench.engine.running == {"t1"})
    assert bench.trouble == []


async def test_what_may_be_granted_any_moment_is_told_in_a_join(bench: Bench) -> None:
    """Of every claim that has not been answered, overtaken ones too; what was granted is owned."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    first = await bench.manager.next(ClaimRequest)
    bench.assign("t1", "t2", "t3", generation=2)
    second = await bench.manager.next(ClaimRequest)
    assert bench.runner.claiming() == ("t1", "t2", "t3")
    second.answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    await bench.settle()
    assert bench.runner.claiming() == ("t1",)
    first.answer(ClaimResponse(granted=(granted("t1"),)))
    await until(lambda: bench.engine.running == {"t1"})
    assert bench.runner.claiming() == ()
    assert bench.runner.owned() == {"t1": 1}


async def test_a_lost_worker_waits_for_no_grant(bench: Bench) -> None:
    """What it claimed under its former identity is free for anybody."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    await bench.manager.next(ClaimRequest)
    bench.runner.lose("ILLEGAL_GENERATION")
    assert bench.runner.claiming() == ()


async def test_trouble_of_a_claim_is_the_membership_s(bench: Bench) -> None:
    """With the identity it was met under."""
    bench.grants(lambda _: None)
    bench.assign("t1", generation=4)
    (await bench.manager.next(ClaimRequest)).answer(failure(ErrorCode.ILLEGAL_GENERATION))
    await until(lambda: bench.trouble)
    assert bench.trouble[0].asked is RequestKind.CLAIM
    assert bench.trouble[0].identity == Identity(ME, 4)


async def test_a_claim_nobody_could_answer_is_made_again(bench: Bench) -> None:
    """The same batch, after a back-off."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.grants(grant_all())
    await bench.clock.advance(0.1)
    await until(lambda: bench.engine.running == {"t1"})
    assert bench.trouble == []


async def test_a_late_grant_of_what_is_no_longer_assigned_is_released(bench: Bench) -> None:
    """Its token is ours and nobody else's until we give it back."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    call = await bench.manager.next(ClaimRequest)
    bench.assign(generation=2)
    call.answer(ClaimResponse(granted=(granted("t1", 7),)))
    await until(lambda: bench.released == {"t1": 7})
    assert bench.engine.started == []


async def test_a_higher_token_is_not_released_while_the_query_of_the_lower_one_stops(bench: Bench) -> None:
    """A release says that nothing of the task runs here, whichever token it runs under."""
    (query,) = await bench.run("t1")
    query.hold_stops()
    bench.manager.no_rule(ClaimRequest)
    bench.refresh()
    late = await bench.manager.next(ClaimRequest)
    bench.assign(generation=2)
    await bench.settle()
    late.answer(ClaimResponse(granted=(granted("t1", 2),)))
    await bench.settle()
    assert query.stops == [30.0, 0.0]
    assert (bench.released, bench.runner.owned()) == ({}, {"t1": 2})
    query.let_stop()
    await until(lambda: bench.released == {"t1": 2})
    assert bench.engine.queries("t1") == [query]
    assert bench.runner.owned() == {}


async def test_a_late_grant_of_a_released_token_is_no_grant(bench: Bench) -> None:
    """The answer was under way while the token was given back."""
    (query,) = await bench.run("t1")
    bench.manager.no_rule(ClaimRequest)
    bench.refresh()
    late = await bench.manager.next(ClaimRequest)
    bench.assign(generation=2)
    await until(lambda: bench.released == {"t1": 1})
    bench.assign("t1", generation=3)
    late.answer(ClaimResponse(granted=(granted("t1", 1),)))
    await bench.settle()
    assert bench.engine.queries("t1") == [query]
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(granted=(granted("t1", 2),)))
    await until(lambda: bench.engine.query("t1").spec.token == 2)


async def test_releases_that_come_together_go_together(bench: Bench) -> None:
    """One request for all that is stopped at the same time."""
    await bench.run(*(f"t{number}" for number in range(50)))
    bench.assign(generation=2)
    await until(lambda: len(bench.released) == 50)
    assert len(bench.manager.asked(ReleaseRequest)) <= 2


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR])
async def test_a_release_that_failed_is_made_again(code: ErrorCode, bench: Bench) -> None:
    """Else the new owner would wait for its rebalance timeout."""
    await bench.run("t1")
    bench.manager.no_rule(ReleaseRequest)
    bench.assign(generation=2)
    (await bench.manager.next(ReleaseRequest)).answer(failure(code))
    bench.manager.rule(ReleaseRequest, accept_all)
    await bench.clock.advance(0.1)
    await until(lambda: bench.runner.owned() == {})
    assert bench.trouble == []


async def test_a_task_whose_grant_was_lost_is_released_when_it_moves_on(bench: Bench) -> None:
    """The manager has given it to us, and we have not heard so: the heir would wait for our patience."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    lost = await bench.manager.next(ClaimRequest)
    bench.assign("t2", generation=2)
    assert (await bench.manager.next(ClaimRequest)).request.tasks == ("t2",)
    lost.answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    again = await bench.manager.next(ClaimRequest)
    assert (again.request.tasks, again.request.generation_id) == (("t1", "t2"), 2)
    again.answer(ClaimResponse(granted=(granted("t1", 7), granted("t2"))))
    await until(lambda: bench.released == {"t1": 7})
    await until(lambda: bench.engine.running == {"t2"})
    bench.refresh()
    assert (await bench.manager.next(ClaimRequest)).request.tasks == ("t2",)


@pytest.mark.parametrize("is_stale", [False, True])
async def test_a_lost_grant_is_asked_for_when_the_token_before_it_is_gone(
    bench: Bench, *, is_stale: bool
) -> None:
    """The task was taken away and given again while its query ran here: that one's release frees nobody."""
    bench.engine.slow.add("t1")
    (query,) = await bench.run("t1")
    bench.manager.no_rule(ClaimRequest)
    bench.refresh()
    lost = await bench.manager.next(ClaimRequest)
    bench.assign(generation=2)
    lost.answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.settle()
    bench.grants(grant_all(2))
    if is_stale:
        bench.manager.rule(ReportRequest, stale)
        bench.refresh()
    else:
        query.finish_batch()
    await until(lambda: bench.released == {"t1": 2})
    assert bench.engine.queries("t1") == [query]


async def test_a_worker_without_tasks_asks_what_became_of_its_lost_claim(bench: Bench) -> None:
    """Whatever it is told, it asks once: a claim of before cannot be granted in a later generation."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.settle()
    bench.assign(generation=2)
    again = await bench.manager.next(ClaimRequest)
    assert again.request.tasks == ("t1",)
    again.answer(ClaimResponse(refused=(RefusedTask("t1", ErrorCode.NOT_ASSIGNED.name),)))
    await bench.settle()
    bench.assign(generation=3)
    await bench.settle()
    assert len(bench.claimed) == 2
    assert bench.released == {}


async def test_a_claim_that_was_refused_is_not_in_doubt(bench: Bench) -> None:
    """The manager has said that it granted nothing."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    await bench.settle()
    bench.assign(generation=2)
    await bench.settle()
    assert len(bench.claimed) == 1


async def test_what_was_heard_after_all_is_not_in_doubt(bench: Bench) -> None:
    """The second try was answered; when the task moves on it is held, and let go of as any other."""
    bench.manager.no_rule(ClaimRequest)
    bench.assign("t1")
    (await bench.manager.next(ClaimRequest)).answer(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.grants(grant_all())
    await bench.clock.advance(0.2)
    await until(lambda: bench.engine.running == {"t1"})
    bench.assign(generation=2)
    await until(lambda: bench.released == {"t1": 1})
    assert bench.claimed == [("t1",), ("t1",)]
