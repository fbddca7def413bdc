from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from protocol.errors import ErrorCode
from protocol.messages.ownership import MAX_CAUSE_LENGTH, ReportRequest
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from telemetry.secrets import KnownSecrets
from tests.fakes.manager import failure
from tests.unit.worker.tasks.bench import change, grant
from worker.tasks.query_run import SLOW_START_S

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


async def test_a_task_is_reported_starting_and_running(bench: Bench) -> None:
    """As soon as it is either."""
    gate = bench.engine.hold("t1")
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
    assert bench.engine.running == set()
    await bench.clock.advance(0.1)
    assert bench.engine.query("t1").spec == query.spec
    assert bench.manager.states("t1")[-3:] == ["RESTARTING", "STARTING", "RUNNING"]
    assert bench.manager.reports("t1")[-1].cause is None


async def test_a_query_that_fails_too_often_is_failed(bench: Bench) -> None:
    """After five restarts it stays owned, with its cause, and rests; its neighbour runs on."""
    bench.engine.broken["t1"] = "no such path"
    bench.assign("t1", "t2")
    await bench.clock.advance(60)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("FAILED", "no such path")
    assert [spec.task for spec in bench.engine.attempts].count("t1") == 6
    assert bench.runner.owned() == {"t1": 1, "t2": 1}
    assert bench.engine.running == {"t2"}
    await bench.clock.advance(600)
    assert bench.engine.queries("t1") == []
    assert [spec.task for spec in bench.engine.attempts].count("t1") == 6


async def test_outages_are_counted_apart_from_failures(bench: Bench) -> None:
    """Whoever is told of tasks that fail again and again is not told of brokers that are away."""
    bench.engine.broken["t1"] = "no broker answers"
    bench.engine.away = {"t1"}
    bench.assign("t1")
    await bench.clock.advance(60)
    [seen] = bench.runner.views()
    assert seen.restarts == 0
    assert seen.outages > 3
    bench.engine.away = set()
    await bench.clock.advance(20)
    [seen] = bench.runner.views()
    assert seen.restarts > 0


async def test_the_limit_is_the_definition_s(bench: Bench) -> None:
    """`max_restarts` 0 means once and no more."""
    grant(bench, restart={"max_restarts": 0})
    bench.engine.broken["t1"] = "no such path"
    bench.assign("t1")
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "FAILED"


async def test_a_surprise_harms_only_its_own_task(bench: Bench) -> None:
    """An engine that raises what it never said it would is a failing start; one id leads to its trace."""
    bench.engine.surprise = ZeroDivisionError("division by zero")
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
    assert last.cause == "the query ended by itself, which nobody had asked for"


async def test_a_bounded_query_completes_and_is_forgotten(bench: Bench) -> None:
    """COMPLETED is reported, with the last batch, before the task is let go of."""
    grant(bench, trigger={"available_now": True})
    (query,) = await bench.run("t1")
    query.advance(9)
    query.end()
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.batch_id) == ("COMPLETED", 9)
    assert bench.runner.owned() == {}
    bench.refresh()
    await bench.settle()
    assert len(bench.claimed) == 1


async def test_whether_a_query_is_bounded_is_its_own_word(bench: Bench) -> None:
    """An entry point may have given it a trigger that the definition does not know of."""
    (query,) = await bench.run("t1")
    query.is_bounded = True
    query.end()
    await bench.settle()
    assert bench.manager.states("t1")[-1] == "COMPLETED"


async def test_completion_is_told_however_long_that_takes(bench: Bench) -> None:
    """A manager that is away hears of it when it is back."""
    grant(bench, trigger={"available_now": True})
    (query,) = await bench.run("t1")
    heard = bench.manager._rules[ReportRequest]
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    query.end()
    await bench.clock.advance(5)
    assert bench.runner.owned() == {"t1": 1}
    bench.manager.rule(ReportRequest, heard)
    await bench.clock.advance(2)
    assert bench.manager.states("t1")[-1] == "COMPLETED"
    assert bench.runner.owned() == {}


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
    assert bench.engine.queries("t1") == [query]
    assert bench.manager.states("t1")[-1] == "FAILED"
    assert len(bench.fenced) == 1


async def test_a_start_that_is_fenced_is_not_tried_again(bench: Bench) -> None:
    """The sink has seen a higher token before the first batch."""
    bench.engine.fenced.add("t1")
    bench.assign("t1")
    await bench.clock.advance(600)
    assert len(bench.engine.attempts) == 1
    assert bench.manager.states("t1") == ["STARTING", "FAILED"]
    assert len(bench.fenced) == 1


async def test_a_start_that_can_never_work_is_not_tried_again(bench: Bench) -> None:
    """A secret that the worker may not use will not be there at the next try; a change of the task helps."""
    bench.engine.broken["t1"] = "sink.options.url: ${env:PW} is not set on this worker"
    bench.engine.permanent.add("t1")
    bench.assign("t1")
    await bench.clock.advance(600)
    assert len(bench.engine.attempts) == 1
    assert bench.manager.states("t1")[-1] == "FAILED"
    assert bench.fenced == []
    bench.engine.broken.clear()
    await change(bench, restart_count=1)
    assert bench.engine.query("t1").is_running


async def test_a_cause_is_cut_when_its_secrets_are_out_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a secret would not be known for one."""
    known = KnownSecrets()
    known.learn("hunter2-hunter2-hunter2")
    monkeypatch.setattr("telemetry.secrets.SECRETS", known)
    bench.engine.broken["t1"] = "x" * (MAX_CAUSE_LENGTH - 10) + "hunter2-hunter2-hunter2"
    bench.assign("t1")
    await bench.settle()
    cause = bench.manager.reports("t1")[-1].cause
    assert cause is not None
    assert "hunter" not in cause


async def test_a_start_that_takes_long_says_what_it_waits_for(bench: Bench) -> None:
    """In its state, not before some seconds; and no more when it runs."""
    gate = bench.engine.hold("t1")
    bench.assign("t1")
    await bench.clock.advance(SLOW_START_S - 1)
    assert bench.manager.reports("t1")[-1].cause is None
    await bench.clock.advance(2)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("STARTING", "waits for the gate of t1")
    gate.set()
    await bench.settle()
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("RUNNING", None)


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
    assert [(spec.token, spec.reset) for spec in bench.engine.attempts] == [(5, reset), (5, reset)]


async def test_a_task_from_another_group_runs_under_the_names_its_sink_knows(bench: Bench) -> None:
    """They are granted with it; all others are known by their own."""
    grant(bench, token=5, home=TaskHome("a", "old"))
    await bench.run("t1")
    [spec] = bench.engine.attempts
    assert (spec.task, spec.known_as) == ("t1", TaskHome("a", "old"))
    assert replace(spec, home=None).known_as == TaskHome(spec.group, "t1")


async def test_what_was_reached_goes_to_the_engine_and_comes_back_with_each_batch(bench: Bench) -> None:
    """The grant says how far the task had come; a report says which checkpoint knows of its batch."""
    reached = Reached(41, "/shared/g/t1", "worker-0")
    grant(bench, token=5, reached=reached)
    [query] = await bench.run("t1")
    assert [spec.reached for spec in bench.engine.attempts] == [reached]
    query.advance(42)
    await bench.clock.advance(1)
    told = [(report.batch_id, report.checkpoint) for report in bench.manager.reports("t1")]
    assert told == [(None, None), (None, None), (42, "/checkpoints/g/t1")]  # STARTING, RUNNING, a batch


async def test_a_task_whose_brokers_are_away_waits_for_them_and_goes_on(bench: Bench) -> None:
    """After ten minutes as after seconds, and never FAILED, whatever its restart policy is."""
    grant(bench, restart={"max_restarts": 0})
    bench.engine.broken["t1"], bench.engine.away = "no broker answers", {"t1"}
    bench.assign("t1")
    await bench.clock.advance(600)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("RESTARTING", "no broker answers")
    assert bench.manager.states("t1") == ["STARTING", "RESTARTING"]
    del bench.engine.broken["t1"]
    await bench.clock.advance(18)
    assert bench.engine.running == {"t1"}
    assert bench.manager.reports("t1")[-1].cause is None
