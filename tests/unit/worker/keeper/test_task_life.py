from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.errors import ErrorCode
from protocol.messages.ownership import ClaimRequest, ClaimResponse, ReportRequest
from protocol.messages.tasks import TaskReset
from telemetry.secrets import KnownSecrets
from tests.fakes.manager import failure, granted
from worker.keeper.task import MAX_CAUSE_LENGTH

if TYPE_CHECKING:
    from tests.unit.worker.keeper.bench import Bench


def grant(bench: Bench, **what: Any) -> None:
    """Every claim of t1 is granted with these particulars from now on."""
    bench.grants(
        lambda request: ClaimResponse(granted=tuple(granted(task, **what) for task in request.tasks))
    )


async def change(bench: Bench, **what: Any) -> None:
    """A heartbeat says that something has changed, and the claim says what."""
    grant(bench, **what)
    bench.refresh()
    await bench.settle()


async def test_a_task_is_reported_starting_and_running(bench: Bench) -> None:
    """As soon as it is either."""
    gate = bench.executor.hold("t1")
    bench.assign("t1")
    await bench.settle()
    assert bench.manager.states("t1") == ["STARTING"]
    gate.set()
    await bench.settle()
    assert bench.manager.states("t1") == ["STARTING", "RUNNING"]


async def test_progress_is_reported_once_a_second_and_only_if_there_is_any(bench: Bench) -> None:
    """One batch of news for all tasks."""
    query, _ = await bench.run("t1", "t2")
    before = len(bench.manager.asked(ReportRequest))
    for batch in range(5):
        query.advance(batch, rows=10)
    await bench.clock.advance(1)
    await bench.clock.advance(1)
    reports = bench.manager.asked(ReportRequest)[before:]
    assert [[(each.task, each.batch_id, each.metrics) for each in report.tasks] for report in reports] == [
        [("t1", 4, {"rows": 10})]
    ]


async def test_what_a_task_has_turned_out_to_be_is_reported_with_its_progress(bench: Bench) -> None:
    """Half of its worker's time here, once it was watched long enough."""
    (query,) = await bench.run("t1")
    for batch in range(40):
        query.advance(batch, batch_ms=500)
        await bench.clock.advance(1)
    loads = [(report.metrics or {}).get("load") for report in bench.manager.reports("t1")]
    assert loads[5] is None
    assert loads[-1] == pytest.approx(0.5, abs=0.03)


async def test_everything_is_reported_thrice_a_session(bench: Bench) -> None:
    """Without news too: it keeps the session while a join is parked, and a restarted manager informed."""
    await bench.run("t1", "t2")
    before = len(bench.manager.asked(ReportRequest))
    await bench.clock.advance(9.5)
    reports = bench.manager.asked(ReportRequest)[before:]
    assert [len(report.tasks) for report in reports] == [2, 2, 2]


async def test_a_failing_query_is_started_again_after_a_while(bench: Bench) -> None:
    """RESTARTING with the cause, then a new query under the same token."""
    (query,) = await bench.run("t1")
    query.end("the disk is full\nat line 3")
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("RESTARTING", "the disk is full\nat line 3")
    await bench.clock.advance(0.9)
    assert bench.executor.running == set()
    await bench.clock.advance(0.1)
    assert bench.executor.query("t1").spec == query.spec
    assert bench.manager.states("t1")[-2:] == ["RESTARTING", "RUNNING"]
    assert bench.manager.reports("t1")[-1].cause is None


async def test_a_query_that_fails_too_often_is_failed(bench: Bench) -> None:
    """After five restarts it stays owned, with its cause, and rests; its neighbour runs on."""
    bench.executor.broken["t1"] = "no such path"
    bench.assign("t1", "t2")
    await bench.clock.advance(60)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("FAILED", "no such path")
    assert [spec.task for spec in bench.executor.attempts].count("t1") == 6
    assert bench.keeper.owned() == {"t1": 1, "t2": 1}
    assert bench.executor.running == {"t2"}
    await bench.clock.advance(600)
    assert bench.executor.queries("t1") == []
    assert [spec.task for spec in bench.executor.attempts].count("t1") == 6


async def test_the_limit_is_the_definition_s(bench: Bench) -> None:
    """`max_restarts` 0 means once and no more."""
    grant(bench, restart={"max_restarts": 0})
    bench.executor.broken["t1"] = "no such path"
    bench.assign("t1")
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "FAILED"


async def test_a_surprise_harms_only_its_own_task(bench: Bench) -> None:
    """An engine that raises what it never said it would is a failing start; one id leads to its trace."""
    bench.executor.surprise = ZeroDivisionError("division by zero")
    bench.assign("t1")
    with capture_logs() as logs:
        await bench.settle()
    cause = bench.manager.reports("t1")[-1].cause
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert (
        cause == f"ZeroDivisionError: division by zero (the worker's log has more under {line['cause_id']})"
    )
    assert (line["group"], line["task"]) == ("g", "t1")


async def test_a_cause_brings_no_password_to_the_manager(bench: Bench) -> None:
    """What a driver or a task's own code says may quote a URL; where it leads may be seen."""
    (query,) = await bench.run("t1")
    query.end("cannot reach postgresql://anna:hunter2@db/herd")
    await bench.settle()
    assert bench.manager.reports("t1")[-1].cause == "cannot reach postgresql://anna:***@db/herd"


async def test_a_query_that_ends_unasked_is_a_failure(bench: Bench) -> None:
    """Never a silent stop."""
    (query,) = await bench.run("t1")
    query.end()
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert last.state.value == "RESTARTING"
    assert last.cause == "the query ended by itself, and nobody had asked it to"


async def test_a_bounded_query_completes_and_is_forgotten(bench: Bench) -> None:
    """COMPLETED is reported, with the last batch, before the task is let go of."""
    grant(bench, trigger={"available_now": True})
    (query,) = await bench.run("t1")
    query.advance(9)
    query.end()
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.batch_id) == ("COMPLETED", 9)
    assert bench.keeper.owned() == {}
    bench.refresh()
    await bench.settle()
    assert len(bench.claimed) == 1


async def test_completion_is_told_however_long_that_takes(bench: Bench) -> None:
    """A manager that is away hears of it when it is back."""
    grant(bench, trigger={"available_now": True})
    (query,) = await bench.run("t1")
    heard = bench.manager._rules[ReportRequest]
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    query.end()
    await bench.clock.advance(5)
    assert bench.keeper.owned() == {"t1": 1}
    bench.manager.rule(ReportRequest, heard)
    await bench.clock.advance(2)
    assert bench.manager.states("t1")[-1] == "COMPLETED"
    assert bench.keeper.owned() == {}


async def test_a_bounded_query_that_fails_is_no_completion(bench: Bench) -> None:
    """Its end has a cause."""
    grant(bench, trigger={"available_now": True})
    (query,) = await bench.run("t1")
    query.end("out of memory")
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "RESTARTING"


async def test_a_fenced_query_is_not_started_again(bench: Bench) -> None:
    """The sink has seen a higher token; whether that is right, the answer to the report tells."""
    (query,) = await bench.run("t1")
    query.end("token 1 is stale, 2 is the present one", fenced=True)
    await bench.clock.advance(600)
    assert bench.executor.queries("t1") == [query]
    assert bench.manager.states("t1")[-1] == "FAILED"
    assert len(bench.fenced) == 1


async def test_a_start_that_is_fenced_is_not_tried_again(bench: Bench) -> None:
    """The sink has seen a higher token before the first batch."""
    bench.executor.fenced.add("t1")
    bench.assign("t1")
    await bench.clock.advance(600)
    assert len(bench.executor.attempts) == 1
    assert bench.manager.states("t1") == ["FAILED"]
    assert len(bench.fenced) == 1


async def test_a_start_that_can_never_work_is_not_tried_again(bench: Bench) -> None:
    """A secret that the worker may not use will not be there at the next try; a change of the task helps."""
    bench.executor.broken["t1"] = "sink.options.url: ${env:PW} is not set on this worker"
    bench.executor.hopeless.add("t1")
    bench.assign("t1")
    await bench.clock.advance(600)
    assert len(bench.executor.attempts) == 1
    assert bench.manager.states("t1")[-1] == "FAILED"
    assert bench.fenced == []
    bench.executor.broken.clear()
    await change(bench, restart_count=1)
    assert bench.executor.query("t1").is_running


async def test_a_cause_is_cut_when_its_secrets_are_out_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a secret would not be known for one."""
    known = KnownSecrets()
    known.learn("hunter2-hunter2-hunter2")
    monkeypatch.setattr("telemetry.secrets.SECRETS", known)
    bench.executor.broken["t1"] = "x" * (MAX_CAUSE_LENGTH - 10) + "hunter2-hunter2-hunter2"
    bench.assign("t1")
    await bench.settle()
    cause = bench.manager.reports("t1")[-1].cause
    assert cause is not None
    assert "hunter" not in cause


async def test_pausing_stops_the_query_and_keeps_the_task(bench: Bench) -> None:
    """PAUSED is reported and not released; resuming starts the query under the same token."""
    (query,) = await bench.run("t1")
    await change(bench, target="PAUSED")
    assert query.stops == [30.0]
    assert bench.manager.states("t1")[-1] == "PAUSED"
    assert bench.keeper.owned() == {"t1": 1}
    assert bench.released == {}
    await change(bench)
    assert bench.executor.query("t1").is_running
    assert bench.executor.query("t1").spec.token == 1


async def test_a_task_may_be_paused_from_the_start(bench: Bench) -> None:
    """Its new owner starts nothing."""
    grant(bench, target="PAUSED")
    bench.assign("t1")
    await bench.settle()
    assert bench.executor.started == []
    assert bench.manager.states("t1") == ["PAUSED"]


async def test_stopping_reports_and_releases(bench: Bench) -> None:
    """STOPPED belongs to nobody; it is not claimed again until it is assigned again."""
    (query,) = await bench.run("t1")
    await change(bench, target="STOPPED")
    assert not query.is_running
    assert bench.manager.states("t1")[-1] == "STOPPED"
    assert bench.released == {"t1": 1}
    assert bench.keeper.owned() == {}
    before = len(bench.claimed)
    bench.refresh()
    await bench.settle()
    assert len(bench.claimed) == before


async def test_a_stop_that_is_taken_back_before_it_is_known_is_no_stop(bench: Bench) -> None:
    """The manager was away when the task came to its stop, and is wanted again now."""
    await bench.run("t1")
    heard = bench.manager._rules[ReportRequest]
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await change(bench, target="STOPPED")
    await change(bench)
    bench.manager.rule(ReportRequest, heard)
    await bench.clock.advance(1)
    assert bench.executor.running == {"t1"}
    assert bench.released == {}


@pytest.mark.parametrize(
    "what", [{"restart_count": 1}, {"version": 2, "sql": "SELECT * FROM source"}, {"token": 2}]
)
async def test_what_differs_in_effect_restarts_the_query(what: dict[str, Any], bench: Bench) -> None:
    """A manual restart, another definition, another token: stop in order, start at once."""
    (query,) = await bench.run("t1")
    await change(bench, **what)
    assert query.stops == [30.0]
    assert len(bench.executor.queries("t1")) == 2
    assert bench.executor.running == {"t1"}


async def test_the_new_definition_is_the_one_that_runs(bench: Bench) -> None:
    """Not the one the query was first started with."""
    await bench.run("t1")
    await change(bench, version=2, sql="SELECT * FROM source")
    assert bench.executor.query("t1").spec.definition.sql == "SELECT * FROM source"


@pytest.mark.parametrize("changes", [{"weight": 5.0}, {"labels": {"a": "b"}}, {"worker": "w"}])
async def test_what_is_the_same_in_effect_runs_on(changes: dict[str, Any], bench: Bench) -> None:
    """The query is not touched."""
    (query,) = await bench.run("t1")
    await change(bench, version=2, **changes)
    assert bench.executor.queries("t1") == [query]
    assert query.stops == []


async def test_a_new_restart_policy_counts_without_a_restart(bench: Bench) -> None:
    """The next failure is judged by it."""
    (query,) = await bench.run("t1")
    await change(bench, version=2, restart={"max_restarts": 0})
    query.end("boom")
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "FAILED"


@pytest.mark.parametrize("what", [{"restart_count": 1}, {"version": 2, "sql": "SELECT * FROM source"}])
async def test_a_failed_task_is_started_afresh(what: dict[str, Any], bench: Bench) -> None:
    """By a manual restart or a mended definition, with a clean record."""
    policy = {"restart": {"max_restarts": 1}}
    bench.executor.broken["t1"] = "boom"
    grant(bench, **policy)
    bench.assign("t1")
    await bench.clock.advance(10)
    assert bench.manager.states("t1")[-1] == "FAILED"
    await change(bench, **policy, **what)
    assert bench.manager.states("t1")[-1] == "RESTARTING"


async def test_a_restart_does_not_wait_for_the_back_off(bench: Bench) -> None:
    """Whoever asks for it wants it now."""
    (query,) = await bench.run("t1")
    query.end("boom")
    await bench.settle()
    assert bench.executor.running == set()
    await change(bench, restart_count=1)
    assert bench.executor.running == {"t1"}


async def test_a_definition_this_worker_cannot_read_fails_the_task(bench: Bench) -> None:
    """With the reason, and until it is mended."""
    grant(bench, nonsense=1)
    bench.assign("t1")
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert last.state.value == "FAILED"
    assert "nonsense" in (last.cause or "")
    await change(bench, version=2)
    assert bench.executor.running == {"t1"}


async def test_a_claim_that_brings_nothing_new_changes_nothing(bench: Bench) -> None:
    """Claims are made at every change of any task."""
    (query,) = await bench.run("t1")
    for _ in range(5):
        bench.refresh()
        await bench.settle()
    assert bench.executor.queries("t1") == [query]
    assert len(bench.manager.asked(ClaimRequest)) == 6


async def test_a_very_long_cause_is_cut(bench: Bench) -> None:
    """A trace of any length fits into a report."""
    (query,) = await bench.run("t1")
    query.end("x" * 1_000_000)
    await bench.settle()
    assert len(bench.manager.reports("t1")[-1].cause or "") == 20_000


async def test_a_query_begins_where_its_grant_says(bench: Bench) -> None:
    """The reset goes to the engine with every start, a restart after a failure included."""
    reset = TaskReset(2, {"startingOffsets": "latest"})
    grant(bench, token=5, reset=reset)
    (query,) = await bench.run("t1")
    query.end("no such path")
    await bench.clock.advance(2)
    assert [(spec.token, spec.reset) for spec in bench.executor.attempts] == [(5, reset), (5, reset)]
