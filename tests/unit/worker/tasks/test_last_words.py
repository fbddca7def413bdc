"""What a worker says last of a task tells what it knew of it, lest it is taken for more than it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.ownership import ReportRequest, TaskErrorsResponse
from tests.fakes.manager import failure
from tests.unit.worker.tasks.bench import change, grant

if TYPE_CHECKING:
    from tests.fakes.query_engine import FakeQuery
    from tests.unit.worker.tasks.bench import Bench

ONCE: dict[str, Any] = {"available_now": True}


async def ended(bench: Bench) -> FakeQuery:
    """A bounded query that has come to its end as of revision 4, while the manager is away."""
    grant(bench, revision=4, trigger=ONCE)
    bench.revision = 4
    (query,) = await bench.run("t1")
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    query.end()
    await bench.settle()
    return query


async def test_an_end_is_told_as_of_what_was_known(bench: Bench) -> None:
    """And so is the last batch."""
    await ended(bench)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.tasks_revision) == ("COMPLETED", 4)


async def test_what_runs_is_told_without(bench: Bench) -> None:
    """It is true of whatever is wanted."""
    grant(bench, revision=4)
    await bench.run("t1")
    assert {each.tasks_revision for each in bench.manager.reports("t1")} == {None}


async def test_an_end_is_told_again_as_of_a_later_revision(bench: Bench) -> None:
    """The manager goes by no word that is older than the last change, which meant nothing to the query."""
    await ended(bench)
    await change(bench, revision=5, weight=2.0, trigger=ONCE)
    await bench.clock.advance(5)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.tasks_revision) == ("COMPLETED", 5)
    assert len(bench.engine.attempts) == 1


async def test_a_run_that_is_asked_for_meanwhile_is_begun(bench: Bench) -> None:
    """It says no more that the one before is over."""
    await ended(bench)
    await change(bench, revision=5, restart_count=1, trigger=ONCE)
    await bench.clock.advance(5)
    assert len(bench.engine.attempts) == 2
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.tasks_revision) == ("RUNNING", None)


async def test_a_last_word_that_is_refused_is_none(bench: Bench) -> None:
    """The manager wants another run, of which this worker has not heard: it claims, and has a new token."""
    await ended(bench)
    grant(bench, token=2, revision=5, restart_count=1, trigger=ONCE)
    bench.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(
            tasks={each.task: "NONE" if each.token == 2 else "STALE_TOKEN" for each in request.tasks}
        ),
    )
    await bench.clock.advance(5)
    assert bench.runner.owned() == {"t1": 2}
    assert len(bench.engine.attempts) == 2
    assert bench.manager.states("t1")[-1] == "RUNNING"
