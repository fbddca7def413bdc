"""What is pending is made ready, and what comes of that when it is granted, or is not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse, PendingTask, RefusedTask
from protocol.messages.tasks import TaskHome, TaskReset
from tests.fakes.manager import failure, granted
from tests.fakes.turns import until
from tests.unit.worker.tasks.bench import ME, change
from worker.membership.events import Identity
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from tests.fakes.manager import Call
    from tests.fakes.query_engine import FakePrepared
    from tests.unit.worker.tasks.bench import Bench

HOME = TaskHome("before", "t")
SELECT_TWO = "SELECT 2 AS two FROM source"


def offered(
    task: str, *, reset: TaskReset | None = None, home: TaskHome | None = None, **changes: Any
) -> PendingTask:
    """It is another worker's; `changes` are keys of its definition."""
    return PendingTask(
        task,
        "worker-2",
        granted(task, **changes).definition,
        msgspec.UNSET if reset is None else reset,
        msgspec.UNSET if home is None else home,
    )


async def waiting(bench: Bench, *pending: PendingTask) -> Call[ClaimRequest]:
    """The engine makes ready what is `pending`; returns the claim that waits for it."""
    bench.engine.prepares = 4
    bench.manager.no_rule(ClaimRequest)
    bench.assign(*(each.task for each in pending))
    first = await bench.manager.next(ClaimRequest)
    first.answer(ClaimResponse(pending=pending))
    call = await bench.manager.next(ClaimRequest)
    await bench.settle()
    return call


def discarded(bench: Bench) -> list[str]:
    """What was made ready for nobody."""
    return [each.query.task for each in bench.engine.prepared if each.is_discarded]


async def test_a_claim_asks_first_what_is_pending_and_waits_then(bench: Bench) -> None:
    """Without a pause between: the first answer was not held because it was not to be."""
    await waiting(bench, offered("t1"))
    requests = bench.manager.asked(ClaimRequest)
    assert [(each.wait_ms, each.prepare) for each in requests] == [(0, 4), (3000, 4)]


async def test_an_engine_that_makes_nothing_ready_has_its_claims_wait_at_once(bench: Bench) -> None:
    """One request, as ever, and no definitions."""
    bench.assign("t1")
    await bench.settle()
    requests = bench.manager.asked(ClaimRequest)
    assert [(each.wait_ms, each.prepare) for each in requests] == [(3000, 0)]


async def test_what_was_made_ready_is_taken_by_the_start(bench: Bench) -> None:
    """Once: the next start of the task does without."""
    call = await waiting(bench, offered("t1", reset=TaskReset(3), home=HOME))
    (prepared,) = bench.engine.prepared
    assert (prepared.query.task, prepared.query.reset, prepared.query.home) == ("t1", TaskReset(3), HOME)
    assert bench.engine.attempts == []
    call.answer(ClaimResponse(granted=(granted("t1", reset=TaskReset(3), home=HOME),)))
    await until(lambda: bench.engine.running == {"t1"})
    await change(bench, restart_count=1, reset=TaskReset(3), home=HOME)
    await until(lambda: len(bench.engine.queries("t1")) == 2)
    assert bench.engine.taken == [prepared]
    assert discarded(bench) == []


@pytest.mark.parametrize(
    "grant",
    [
        granted("t1", sql=SELECT_TWO),
        granted("t1", reset=TaskReset(3)),
        granted("t1", home=HOME),
        granted("t1", target="PAUSED"),
    ],
    ids=["definition", "reset", "home", "target"],
)
async def test_what_was_made_ready_of_something_else_is_discarded(bench: Bench, grant: Any) -> None:
    """The grant says what is to be run."""
    call = await waiting(bench, offered("t1"))
    call.answer(ClaimResponse(granted=(grant,)))
    await until(lambda: discarded(bench) == ["t1"])
    await bench.settle()
    assert bench.engine.taken == []
    assert bench.engine.running == ({"t1"} if grant.target == "RUNNING" else set())


async def test_another_definition_is_made_ready_in_place_of_the_former(bench: Bench) -> None:
    """The claim that brings the news tells of it."""
    await waiting(bench, offered("t1"))
    bench.refresh()
    call = await bench.manager.next(ClaimRequest)
    call.answer(ClaimResponse(pending=(offered("t1", sql=SELECT_TWO),)))
    await until(lambda: len(bench.engine.prepared) == 2)
    assert discarded(bench) == ["t1"]
    assert not bench.engine.prepared[-1].is_discarded
    assert bench.engine.prepared[-1].query.definition.sql == SELECT_TWO


async def test_what_is_stale_is_made_ready_anew(bench: Bench) -> None:
    """Its owner takes its time to let go."""
    call = await waiting(bench, offered("t1"))
    bench.engine.prepared[0].is_stale = True
    call.answer(ClaimResponse(pending=(offered("t1"),)))
    await until(lambda: len(bench.engine.prepared) == 2)
    assert discarded(bench) == ["t1"]
    assert not bench.engine.prepared[-1].is_discarded


async def test_what_is_offered_again_is_not_made_ready_again(bench: Bench) -> None:
    """Each answer says which tasks are next."""
    call = await waiting(bench, offered("t1"), offered("t2"), PendingTask("t3", "worker-2"))
    call.answer(ClaimResponse(granted=(granted("t1"),), pending=(offered("t2"), offered("t3"))))
    await until(lambda: len(bench.engine.prepared) == 3)
    assert [each.query.task for each in bench.engine.prepared] == ["t1", "t2", "t3"]
    await until(lambda: bench.engine.running == {"t1"})
    assert discarded(bench) == []


@pytest.mark.parametrize("end", ["refused", "assigned to others", "lost", "drained"])
async def test_what_the_worker_is_not_to_have_is_discarded(bench: Bench, end: str) -> None:
    """However it hears of that; what is not there yet never will be."""
    bench.engine.unprepared["t2"] = gate = asyncio.Event()
    call = await waiting(bench, offered("t1"), offered("t2"))
    match end:
        case "refused":
            names = ("t1", "t2")
            call.answer(ClaimResponse(refused=tuple(RefusedTask(t, "NOT_ASSIGNED") for t in names)))
        case "assigned to others":
            bench.assign(generation=2)
        case "lost":
            bench.runner.lose("the lease ran out")
        case _:
            bench.spawn(bench.runner.let_go(5))
    await until(lambda: discarded(bench) == ["t1"])
    gate.set()
    await bench.settle()
    assert [each.query.task for each in bench.engine.prepared] == ["t1"]
    assert bench.engine.attempts == []


async def test_an_assignment_keeps_what_it_gives_again(bench: Bench) -> None:
    """A rebalance for another reason is none to begin anew."""
    await waiting(bench, offered("t1"), offered("t2"))
    bench.runner.adopt(Identity(ME, 2), frozenset({"t1", "t3"}))
    await bench.settle()
    assert discarded(bench) == ["t2"]


async def test_a_grant_does_not_wait_for_what_is_not_there_yet(bench: Bench) -> None:
    """The engine may not even have begun with it."""
    bench.engine.unprepared["t1"] = asyncio.Event()
    call = await waiting(bench, offered("t1"))
    call.answer(ClaimResponse(granted=(granted("t1"),)))
    await until(lambda: bench.engine.running == {"t1"})
    assert bench.engine.taken == []


@pytest.mark.parametrize("trouble", [QueryError("no room"), ZeroDivisionError()], ids=["foreseen", "bug"])
async def test_a_failure_to_make_ready_is_none_of_the_task(bench: Bench, trouble: Exception) -> None:
    """It is tried again with the next answer, and the start does without."""
    bench.engine.unprepared["t1"] = trouble
    call = await waiting(bench, offered("t1"))
    del bench.engine.unprepared["t1"]
    call.answer(ClaimResponse(pending=(offered("t1"),)))
    await until(lambda: len(bench.engine.prepared) == 1)
    assert bench.manager.states("t1") == []


async def test_a_definition_that_cannot_be_read_is_not_made_ready(bench: Bench) -> None:
    """The grant of it says what is wrong."""
    call = await waiting(bench, offered("t1", sink={"format": 5}))
    assert bench.engine.prepared == []
    call.answer(ClaimResponse(granted=(granted("t1", sink={"format": 5}),)))
    await until(lambda: bench.manager.states("t1") == ["FAILED"])


@pytest.mark.parametrize("change_of_mind", ["paused", "assigned to others"])
async def test_a_task_that_is_not_to_run_before_its_start_gives_up_what_was_made_ready(
    bench: Bench, change_of_mind: str
) -> None:
    """Its life has begun, but what ran here before it is not over yet."""
    bench.engine.prepares = 4
    (query,) = await bench.run("t1")
    query.hold_stops()
    bench.manager.no_rule(ClaimRequest)
    bench.refresh()
    (await bench.manager.next(ClaimRequest)).answer(ClaimResponse(pending=(offered("t1"),)))
    call = await bench.manager.next(ClaimRequest)
    await until(lambda: len(bench.engine.prepared) == 1)
    call.answer(ClaimResponse(granted=(granted("t1", token=2),)))
    await bench.settle()
    if change_of_mind == "paused":
        await change(bench, token=2, target="PAUSED")
    else:
        bench.assign(generation=2)
    query.let_stop()
    await until(lambda: discarded(bench) == ["t1"])


async def test_a_rebalance_without_an_answer_discards_nothing(bench: Bench) -> None:
    """The next assignment says whether the task is still to come here."""
    call = await waiting(bench, offered("t1"))
    call.answer(failure(ErrorCode.REBALANCE_IN_PROGRESS))
    await bench.settle()
    prepared: list[FakePrepared] = bench.engine.prepared
    assert [each.is_discarded for each in prepared] == [False]
