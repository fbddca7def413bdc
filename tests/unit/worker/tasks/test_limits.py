"""Limits of a definition: the rule, and what a task's life makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definition.limits import NAMES, Limit, Limits
from protocol.messages.ownership import ClaimResponse, RefusedTask, ReportRequest, TaskErrorsResponse
from tests.unit.worker.tasks.bench import change, grant
from worker.query_engine import Progress, Stall
from worker.tasks.batch_time import BatchTime
from worker.tasks.limits import End, Exceeded, LimitsWatch, Tell

if TYPE_CHECKING:
    from tests.fakes.query_engine import FakeQuery
    from tests.unit.worker.tasks.bench import Bench


def state_of(rows: int, memory_bytes: int) -> dict[str, int]:
    """As the figures of a batch have it."""
    return {"rows": rows, "memory_bytes": memory_bytes}


def progress(batch_id: int = 0, **metrics: Any) -> Progress:
    """A finished batch."""
    return Progress(batch_id, metrics)


@pytest.mark.parametrize(
    ("name", "most", "kept", "beyond", "cause"),
    [
        ("batch_s", 1.5, {"batch_ms": 1500}, {"batch_ms": 1600}, "batch 0 took 1.6 s, more than 1.5"),
        ("batch_rows", 1000, {"rows": 1000}, {"rows": 1001}, "batch 0 had 1,001 rows, more than 1,000"),
        (
            "state_rows",
            5,
            {"state": state_of(5, 0)},
            {"state": state_of(6, 0)},
            "its state has 6 rows, more than 5",
        ),
        (
            "state_mb",
            1,
            {"state": state_of(0, 2**20)},
            {"state": state_of(0, 3 * 2**19)},
            "its state takes 1.5 MiB of memory, more than 1",
        ),
    ],
)
def test_each_limit_is_of_its_figure(
    name: str, most: float, kept: dict[str, Any], beyond: dict[str, Any], cause: str
) -> None:
    """Up to it nothing is told; beyond it the cause has figure and limit; once it is kept again, neither."""
    watch = LimitsWatch(Limits(**{name: most}))
    assert watch.look(progress(**kept), is_at_work=False, now=0) == []
    told = watch.look(progress(**beyond), is_at_work=False, now=1)
    assert told == [Exceeded(name), Tell(f"limits.{name}: {cause}")]
    assert watch.look(progress(**beyond), is_at_work=False, now=2) == []
    assert watch.look(progress(1, **kept), is_at_work=False, now=3) == [Tell(None)]


def test_a_batch_that_hangs_is_found_while_it_hangs() -> None:
    """Also the first one of a query, of which nothing is known but that it is at work."""
    watch = LimitsWatch(Limits(batch_s=10))
    assert watch.look(None, is_at_work=True, now=100) == []
    assert watch.look(None, is_at_work=True, now=110) == []
    cause = "limits.batch_s: the batch under way has taken 10.5 s, more than 10"
    assert watch.look(None, is_at_work=True, now=110.5) == [Exceeded("batch_s"), Tell(cause)]


def test_batches_that_follow_one_another_are_no_long_one() -> None:
    """Though the query is at work at each look."""
    watch = LimitsWatch(Limits(batch_s=10))
    for now in range(0, 100, 8):
        assert watch.look(progress(now, batch_ms=8000), is_at_work=True, now=now) == []


def test_nor_does_the_rest_before_a_batch() -> None:
    """It begins when the query is first seen at work."""
    watch = LimitsWatch(Limits(batch_s=8))
    assert watch.look(None, is_at_work=False, now=0) == []
    assert watch.look(None, is_at_work=True, now=10) == []


def frozen_in_a_batch() -> LimitsWatch:
    """At work since 0 s, with a batch that may take 20; nobody could look between 1 s and 3600 s."""
    watch = LimitsWatch(Limits(batch_s=Limit(max=20, action="quarantine")))
    for now in (0, 1, 3600):
        assert watch.look(None, is_at_work=True, now=now) == []
    return watch


def test_the_time_in_which_everything_was_frozen_is_no_part_of_a_batch() -> None:
    """One look adds a quarter of a minute at most; what the batch takes itself counts on."""
    watch = frozen_in_a_batch()
    assert watch.look(None, is_at_work=True, now=3604) == []
    [exceeded, end] = watch.look(None, is_at_work=True, now=3605)[:2]
    assert exceeded == Exceeded("batch_s")
    assert isinstance(end, End)
    assert end.cause == "limits.batch_s: the batch under way has taken 21 s, more than 20"


def test_nor_is_it_when_the_batch_is_done() -> None:
    """Though Spark's own figure has it; the next batch is measured as ever."""
    watch = frozen_in_a_batch()
    assert watch.look(progress(0, batch_ms=3_601_000), is_at_work=False, now=3602) == []
    for now in (3603, 3613):
        assert watch.look(progress(0, batch_ms=3_601_000), is_at_work=True, now=now) == []
    told = watch.look(progress(1, batch_ms=21_000), is_at_work=False, now=3624)
    assert Exceeded("batch_s") in told


def test_a_batch_that_ends_while_nobody_looks_is_spared_as_well() -> None:
    """The look that finds it done is the one after the gap."""
    watch = LimitsWatch(Limits(batch_s=20))
    watch.look(None, is_at_work=True, now=0)
    assert watch.look(progress(0, batch_ms=3_600_000), is_at_work=True, now=3600) == []
    assert watch.look(progress(0, batch_ms=3_600_000), is_at_work=True, now=3601) == []


def test_rest_between_two_batches_does_not_count() -> None:
    """A query that waits for data may do so for ever."""
    watch = LimitsWatch(Limits(batch_s=10))
    for now in range(0, 100, 5):
        assert watch.look(None, is_at_work=now % 10 == 0, now=now) == []


@pytest.mark.parametrize("action", ["restart", "quarantine"])
def test_a_limit_that_does_more_than_warn_ends_the_query(action: Any) -> None:
    """With the same cause, once."""
    watch = LimitsWatch(Limits(batch_rows=Limit(max=1, action=action)))
    cause = "limits.batch_rows: batch 0 had 2 rows, more than 1"
    told = watch.look(progress(rows=2), is_at_work=False, now=0)
    assert told[:2] == [Exceeded("batch_rows"), End(cause, action)]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3000), st.booleans(), st.floats(0, 9)), max_size=20)
)
def test_what_is_within_all_limits_is_never_told(looks: list[tuple[int, int, bool, float]]) -> None:
    """Whatever comes in whatever order."""
    watch = LimitsWatch(Limits(batch_s=200, batch_rows=3000, state_rows=3000, state_mb=1))
    now = 0.0
    for batch_id, amount, is_at_work, pause in looks:
        now += pause
        state = state_of(amount, amount)
        found = progress(batch_id, state=state, rows=amount, batch_ms=amount)
        assert watch.look(found, is_at_work=is_at_work, now=now) == []


@pytest.mark.parametrize(
    "odd",
    [
        {"state": {}},
        {"state": {"rows": 9}},
        {"state": {"memory_bytes": None}},
        {"state": 7},
        {"rows": "many"},
        {"batch_ms": None},
        {"batch_ms": "1s", "rows": None, "state": None},
    ],
)
def test_of_odd_metrics_only_what_is_there_counts(odd: dict[str, Any]) -> None:
    """An entry point's own query, or a worker of another version, may tell whatever it likes."""
    watch = LimitsWatch(Limits(**dict.fromkeys(NAMES, 8)))
    told = watch.look(progress(**odd), is_at_work=True, now=0)
    names = [each.name for each in told if isinstance(each, Exceeded)]
    assert names == (["state_rows"] if odd == {"state": {"rows": 9}} else [])


def test_whoever_has_kept_its_limits_once_is_known() -> None:
    """With a batch; that it has done none speaks for nobody, nor does one beyond them."""
    for finished, has_kept in ((None, False), (progress(rows=3), False), (progress(rows=2), True)):
        limits = Limits(batch_rows=Limit(max=2, action="restart"), batch_s=Limit(max=10, action="restart"))
        watch = LimitsWatch(limits)
        told = watch.look(finished, is_at_work=True, now=0)
        for now in range(1, 12):
            told += watch.look(finished, is_at_work=True, now=now)
        assert next(each.has_kept for each in told if isinstance(each, End)) is has_kept


def test_a_warning_does_not_speak_against_it() -> None:
    """It runs on all the while."""
    watch = LimitsWatch(Limits(batch_rows=2, batch_s=Limit(max=10, action="restart")))
    told = [each for now in range(12) for each in watch.look(progress(rows=3), is_at_work=True, now=now)]
    assert [each.has_kept for each in told if isinstance(each, End)] == [True]


def test_every_limit_there_is_has_a_figure() -> None:
    """A name that nothing measures would be a promise."""
    watch = LimitsWatch(Limits(**dict.fromkeys(NAMES, 0.5)))
    found = progress(rows=1, batch_ms=1000, state=state_of(1, 2**20))
    told = watch.look(found, Stall(1), 2**20, is_at_work=False, now=0)
    assert [each.name for each in told if isinstance(each, Exceeded)] == list(NAMES)
    assert {each.name for each in msgspec.structs.fields(Limits)} == set(NAMES)


def test_the_heap_is_of_a_jvm_of_its_own() -> None:
    """Where tasks share one, no figure is known and nothing is told, whatever the limit."""
    watch = LimitsWatch(Limits(heap_mb=100))
    assert watch.look(progress(), is_at_work=False, now=0) == []
    assert watch.look(progress(), None, 100 * 2**20, is_at_work=False, now=1) == []
    cause = "limits.heap_mb: it holds 100.5 MiB of its heap, more than 100"
    told = watch.look(None, None, 201 * 2**19, is_at_work=False, now=2)
    assert told == [Exceeded("heap_mb"), Tell(cause)]
    assert watch.look(None, None, 2**20, is_at_work=False, now=3) == [Tell(None)]


def test_a_silent_query_is_beyond_its_limit_with_what_it_is_at() -> None:
    """As long as it is silent, and once for each silence."""
    watch = LimitsWatch(Limits(hung_s=60))
    cause = "limits.hung_s: no batch has finished for 61 s though there is work: it waits, more than 60"
    told = watch.look(None, Stall(61, "it waits"), is_at_work=True, now=61)
    assert told == [Exceeded("hung_s"), Tell(cause)]
    assert watch.look(None, Stall(121, "it writes"), is_at_work=True, now=121) == []
    assert watch.look(None, is_at_work=True, now=122) == [Tell(None)]


@pytest.mark.parametrize("action", ["restart", "quarantine"])
def test_a_query_that_others_hold_up_is_told_and_goes_on(action: Any) -> None:
    """It is they who hang, by limits of their own; what it is silent for after that counts for itself."""
    watch = LimitsWatch(Limits(hung_s=Limit(max=60, action=action)))
    told = watch.look(None, Stall(61, "it waits", held_up_s=61), is_at_work=True, now=61)
    assert [type(each) for each in told] == [Exceeded, Tell]
    assert watch.look(None, Stall(500, "it writes", held_up_s=440), is_at_work=True, now=500) == []
    [end] = watch.look(None, Stall(501, "it writes", held_up_s=440), is_at_work=True, now=501)
    assert isinstance(end, End)
    assert (end.action, end.at_once) == (action, True)
    assert "501 s though there is work: it writes" in end.cause


def test_without_a_limit_silence_is_told_after_five_minutes() -> None:
    """Whoever gives one has it."""
    assert Limits().silence_s == 300
    assert Limits(hung_s=Limit(max=20, action="restart")).silence_s == 20


async def running(bench: Bench, **limits: Any) -> FakeQuery:
    """A task's query with such limits."""
    grant(bench, limits=limits)
    (query,) = await bench.run("t1")
    return query


async def test_a_warning_stands_until_the_limit_is_kept_again(bench: Bench) -> None:
    """The task runs on, its cause says why it should be looked at, and each time is counted."""
    query = await running(bench, batch_rows=10)
    for rows in (11, 12, 10, 13):
        query.advance(rows, rows=rows)
        await bench.clock.advance(1.1)
        last = bench.manager.reports("t1")[-1]
        assert last.state.value == "RUNNING"
        assert ("limits.batch_rows: batch" in (last.cause or "")) == (rows > 10)
    assert last.metrics is not None
    assert last.metrics["exceeded"] == {"batch_rows": 2}
    assert query.stops == []


async def test_a_restart_stops_the_query_in_order_and_starts_another(bench: Bench) -> None:
    """A batch that hangs, before any other was done: it is counted and told though there are no figures."""
    query = await running(bench, batch_s={"max": 30, "action": "restart"})
    query.is_at_work = True
    await bench.clock.advance(29)
    assert query.is_running
    await bench.clock.advance(5)
    assert len(query.stops) == 1
    assert "RESTARTING" in bench.manager.states("t1")
    report = next(each for each in bench.manager.reports("t1") if each.state.value == "RESTARTING")
    assert report.cause is not None
    assert report.cause.startswith("limits.batch_s: the batch under way has taken 3")
    assert report.metrics == {"exceeded": {"batch_s": 1}}
    assert bench.engine.query("t1") is not query


async def test_a_limit_that_no_query_keeps_ends_in_failed(bench: Bench) -> None:
    """However long each takes to exceed it: the batch is the same one, and begins anew each time."""
    await running(bench, batch_s={"max": 600, "action": "restart"})
    for _ in range(6):
        bench.engine.query("t1").is_at_work = True
        await bench.clock.advance(700)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, len(bench.engine.attempts)) == ("FAILED", 6)
    assert (last.cause or "").startswith("limits.batch_s: the batch under way has taken 601 s")


async def test_a_limit_that_is_kept_in_between_is_no_series(bench: Bench) -> None:
    """A query that does good batches for an hour before it has to be started anew goes on so."""
    await running(bench, batch_s={"max": 600, "action": "restart"})
    for _ in range(9):
        query = bench.engine.query("t1")
        query.advance(0, batch_ms=1000)
        await bench.clock.advance(5)
        query.is_at_work = True
        await bench.clock.advance(700)
        assert not query.is_running
    assert "FAILED" not in bench.manager.states("t1")
    assert len(bench.engine.attempts) == 10


async def test_without_limits_nothing_looks_at_a_query(bench: Bench) -> None:
    """It runs until it ends; what it takes is nobody's business."""
    grant(bench)
    (query,) = await bench.run("t1")
    query.advance(0, rows=10**9, batch_ms=10**9)
    await bench.clock.advance(3600)
    assert query.is_running
    query.end("boom")
    await bench.settle()
    assert bench.manager.reports("t1")[-1].cause == "boom"


QUARANTINE = {"state_rows": {"max": 1, "action": "quarantine"}}


async def go_beyond(bench: Bench) -> FakeQuery:
    """The query of a task whose state is larger than it may be, when the worker has seen that."""
    bench.revision = 4
    grant(bench, revision=4, limits=QUARANTINE)
    (query,) = await bench.run("t1")
    query.advance(0, rows=1)
    query.grow(2)
    await bench.clock.advance(5)
    return query


async def test_a_quarantine_is_asked_for_when_the_query_is_over(bench: Bench) -> None:
    """It is FAILED with the cause and what the worker knew of the task, and no restart is tried."""
    grant(bench, revision=4, limits=QUARANTINE)
    (query,) = await bench.run("t1")
    query.hold_stops()
    query.advance(0, rows=1)
    query.grow(2)
    await bench.clock.advance(5)
    assert len(query.stops) == 1
    assert not any(each.quarantine for each in bench.manager.reports("t1"))
    query.let_stop()
    await bench.clock.advance(60)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == (
        "FAILED",
        "limits.state_rows: its state has 2 rows, more than 1",
    )
    assert (last.quarantine, last.tasks_revision) == (True, 4)
    assert bench.engine.running == set()
    assert len(bench.engine.attempts) == 1


async def test_a_heap_that_is_too_large_ends_the_query_as_well(bench: Bench) -> None:
    """Of a query that has one to itself."""
    query = await running(bench, heap_mb={"max": 1, "action": "quarantine"})
    query.heap_bytes = 2**21
    await bench.clock.advance(5)
    last = bench.manager.reports("t1")[-1]
    assert (last.quarantine, last.cause) == (
        True,
        "limits.heap_mb: it holds 2 MiB of its heap, more than 1",
    )


async def test_a_task_in_quarantine_is_let_go(bench: Bench) -> None:
    """The manager takes it away; a claim for it is not asked for again."""
    await go_beyond(bench)
    assert bench.runner.owned() == {"t1": 1}
    bench.assign(generation=2)
    await bench.settle()
    assert (bench.runner.owned(), bench.released) == ({}, {"t1": 1})
    assert len(bench.engine.attempts) == 1


async def test_a_worker_that_did_not_hear_the_answer_lets_go_as_well(bench: Bench) -> None:
    """The report was taken in, so the next one is stale, and a claim for the task in vain."""
    await go_beyond(bench)
    bench.manager.rule(
        ReportRequest,
        lambda request: TaskErrorsResponse(tasks={each.task: "STALE_TOKEN" for each in request.tasks}),
    )
    refused = (RefusedTask("t1", "NOT_ASSIGNED"),)
    bench.grants(lambda _: ClaimResponse(refused=refused))
    await bench.clock.advance(60)
    assert bench.runner.owned() == {}
    assert len(bench.engine.attempts) == 1


async def test_a_restart_that_comes_first_starts_it_anew(bench: Bench) -> None:
    """The manager has not gone by the report, and the next one asks for no quarantine."""
    await go_beyond(bench)
    await change(bench, revision=5, restart_count=1, limits=QUARANTINE)
    assert len(bench.engine.attempts) == 2
    await bench.clock.advance(2)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.quarantine, last.tasks_revision) == ("RUNNING", False, None)


async def test_it_is_asked_for_again_as_of_a_later_revision(bench: Bench) -> None:
    """The manager went by no word that was older than the last change, which meant nothing to the query."""
    await go_beyond(bench)
    await change(bench, revision=5, weight=2.0, limits=QUARANTINE)
    await bench.clock.advance(2)
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.quarantine, last.tasks_revision) == ("FAILED", True, 5)
    assert len(bench.engine.attempts) == 1


async def test_a_task_that_moves_away_is_not_kept_by_its_limits(bench: Bench) -> None:
    """What is wanted comes first, and nothing looks at a query that is gone."""
    query = await running(bench, batch_rows=10)
    bench.assign(generation=2)
    await bench.settle()
    assert len(query.stops) == 1
    await bench.clock.advance(10)
    assert bench.engine.running == set()


async def test_a_query_that_hangs_is_started_anew_where_that_is_wanted(bench: Bench) -> None:
    """Its cause says where it was."""
    query = await running(bench, hung_s={"max": 30, "action": "restart"})
    query.stall = Stall(31, "it waits for a lock")
    await bench.clock.advance(5)
    assert query.stops == [0.0], "its batch is not waited for"
    report = next(each for each in bench.manager.reports("t1") if each.state.value == "RESTARTING")
    assert report.cause is not None
    assert report.cause.startswith("limits.hung_s: no batch has finished for 31 s")
    assert "it waits for a lock" in report.cause
    assert bench.engine.query("t1") is not query


async def test_a_query_that_hangs_is_told_without_any_limit(bench: Bench) -> None:
    """It runs on; its cause says what the engine says."""
    query = await running(bench)
    query.stall = Stall(301, "it waits for a lock")
    query.trouble = str(query.stall)
    await bench.clock.advance(5)
    assert query.stops == []
    last = bench.manager.reports("t1")[-1]
    assert (last.state.value, last.cause) == ("RUNNING", str(query.stall))


def test_a_batch_that_nobody_has_seen_before_a_freeze_is_spared_as_well() -> None:
    """It began between the last look and the freeze; what was frozen twice is taken off twice."""
    time = BatchTime()
    time.look(6, is_at_work=False, now=0)
    time.look(6, is_at_work=True, now=101)
    time.look(6, is_at_work=True, now=202)
    assert time.under_way_s == 15
    time.look(7, is_at_work=False, now=203)
    assert time.last_s(203) == 203 - 2 * (101 - 15)
