"""When a worker looks for queries that nobody owns, and what it does about them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from protocol.messages.ownership import ReportRequest, TaskErrorsResponse
from tests.fakes.manager import accept_all, failure
from tests.unit.worker.tasks.bench import SETTINGS
from worker.query_engine import NotedQuery
from worker.tasks import orphans

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench

PATIENCE_S = SETTINGS.rebalance_timeout_ms / 1000
GONE, OTHERS = NotedQuery("gone", 4, "a"), NotedQuery("others", 5, "b")


def knowing(request: ReportRequest) -> TaskErrorsResponse:
    """The manager's answer: nobody owns the task `gone` any more."""
    if not request.found:
        return accept_all(request)
    codes = {task: "STALE_TOKEN" if task == "gone" else "NONE" for task in request.found}
    return TaskErrorsResponse(tasks={}, found=codes)


def asked(bench: Bench) -> list[dict[str, int]]:
    """What the manager was asked about queries, each time."""
    return [dict(request.found) for request in bench.manager.asked(ReportRequest) if request.found]


@pytest.fixture
def left(bench: Bench) -> Bench:
    """Two queries are noted down, one of which nobody owns."""
    bench.engine.left = [GONE, OTHERS]
    bench.manager.rule(ReportRequest, knowing)
    return bench


async def test_a_query_that_nobody_owns_is_ended(left: Bench) -> None:
    """After a while in which its owner, if it is alive, can end it; the one that somebody owns goes on."""
    left.assign()
    await left.clock.advance(PATIENCE_S / 2)
    assert left.engine.swept == []
    await left.clock.advance(PATIENCE_S)
    assert left.engine.swept == [GONE]
    assert asked(left)[0] == {"gone": 4, "others": 5}


async def test_looking_ends_when_there_is_nothing_left(left: Bench) -> None:
    """Until the next assignment, which asks no more about what has been ended."""
    left.assign()
    await left.clock.advance(5 * PATIENCE_S)
    assert left.engine.sweeps == 2
    left.assign()
    await left.clock.advance(5 * PATIENCE_S)
    assert left.engine.sweeps == 3
    assert asked(left)[2:] == [{"others": 5}]


async def test_many_assignments_are_one_look(left: Bench) -> None:
    """Rebalances may follow each other closely; a look costs the server something."""
    for generation in range(10):
        left.assign(generation=generation)
        await left.clock.advance(PATIENCE_S / 20)
    assert left.engine.sweeps == 1


async def test_where_queries_end_with_their_workers_nobody_is_asked(bench: Bench) -> None:
    """Nothing is noted down there."""
    bench.assign()
    await bench.clock.advance(PATIENCE_S)
    assert asked(bench) == []


@pytest.mark.parametrize("trouble", ["the records", "the manager", "a former manager", "the query"])
async def test_trouble_ends_nothing_and_is_tried_again(trouble: str, left: Bench) -> None:
    """What cannot be asked is left as it is."""
    match trouble:
        case "the records":
            left.engine.unreadable = "an entry is being replaced"
        case "the manager":
            left.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        case "a former manager":
            left.manager.rule(ReportRequest, accept_all)
        case _:
            left.engine.broken["gone"] = "the server is busy"
    left.assign()
    await left.clock.advance(3 * PATIENCE_S)
    assert left.engine.swept == []
    left.engine.unreadable = None
    left.engine.broken.clear()
    left.manager.rule(ReportRequest, knowing)
    if trouble == "a former manager":  # which has said that all is well
        left.assign()
    await left.clock.advance(3 * PATIENCE_S)
    assert left.engine.swept == [GONE]


async def test_one_that_cannot_be_ended_holds_up_no_other(left: Bench) -> None:
    """Each is tried."""
    left.engine.left = [NotedQuery("bad", 1, "c"), GONE]
    left.engine.broken["bad"] = "it does not end"
    left.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(tasks={}, found=dict.fromkeys(request.found or {}, "STALE_TOKEN")),
    )
    left.assign()
    await left.clock.advance(2 * PATIENCE_S)
    assert left.engine.swept == [GONE]


async def test_very_many_are_asked_about_in_pieces(left: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each small enough for any manager."""
    monkeypatch.setattr(orphans, "MOST_AT_ONCE", 1)
    left.assign()
    await left.clock.advance(2 * PATIENCE_S)
    assert asked(left)[:2] == [{"gone": 4}, {"others": 5}]
    assert left.engine.swept == [GONE]


async def test_an_end_that_hangs_holds_up_no_other_for_long_and_is_asked_for_once(left: Bench) -> None:
    """The server may never answer; what it has done by the next look counts."""
    hung = NotedQuery("hung", 1, "c")
    left.engine.left = [hung, GONE]
    gate = left.engine.unanswered["hung"] = asyncio.Event()
    left.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(tasks={}, found=dict.fromkeys(request.found or {}, "STALE_TOKEN")),
    )
    left.assign()
    for _ in range(6):
        await left.clock.advance(PATIENCE_S)
    assert left.engine.swept == [GONE]
    gate.set()
    for _ in range(3):
        await left.clock.advance(PATIENCE_S)
    assert left.engine.swept == [GONE, hung]


async def test_a_register_that_is_never_read_is_asked_for_once(left: Bench) -> None:
    """Each look in vain would leave a thread behind; when it has been read, looking goes on."""
    gate = left.engine.unanswered["the records"] = asyncio.Event()
    left.assign()
    for _ in range(4):
        await left.clock.advance(PATIENCE_S)
    assert (left.engine.sweeps, left.engine.swept) == (1, [])
    del left.engine.unanswered["the records"]
    gate.set()
    for _ in range(4):
        await left.clock.advance(PATIENCE_S)
    assert left.engine.swept == [GONE]


async def test_the_end_of_one_that_has_a_newer_token_is_its_newer_owner_s(left: Bench) -> None:
    """It is asked about by that token at the next look, and ended if that is stale, too."""
    newer = NotedQuery("gone", 6, "a")
    left.engine.newer[GONE] = newer
    left.assign()
    for _ in range(6):
        await left.clock.advance(PATIENCE_S)
    assert left.engine.swept == [newer]
    assert {"gone": 4, "others": 5} in asked(left)
    assert {"gone": 6, "others": 5} in asked(left)
