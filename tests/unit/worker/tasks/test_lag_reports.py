"""When brokers are asked, of which tasks, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.lag import TaskLag
from protocol.messages.ownership import (
    ClaimResponse,
    LagRequest,
    LagResponse,
    OwnerlessTask,
    ReportRequest,
)
from protocol.messages.tasks import TaskReset
from tests.fakes.manager import DEFINITION, granted
from tests.fakes.query_engine import FakeEngine
from tests.unit.worker.tasks.bench import SETTINGS, Bench, change

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.clock import FakeClock
    from worker.background import BackgroundTasks
    from worker.query_engine import QuerySpec

EVERY_S = 10.0
FAR = TaskLag(at_ms=5, rows=100)


class SlowEngine(FakeEngine):
    """Whose looks take ten seconds."""

    clock: FakeClock

    def __init__(self) -> None:
        super().__init__()
        self.measuring: list[str] = []

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        self.measuring.append(spec.task)
        await self.clock.sleep(10.0)
        return await super().lag(spec)


def lag_of(bench: Bench) -> TaskLag | None:
    """As those who watch the worker see it, of its only task."""
    [view] = bench.runner.views()
    return view.lag


def ownerless(
    *tasks: str, definition: bytes | None = None, revision: int | None = None, count: int = 0
) -> LagResponse:
    """What the manager has the leader measure."""
    document = msgspec.Raw(definition or msgspec.json.encode(DEFINITION))
    return LagResponse(
        tasks=tuple(OwnerlessTask(task=task, definition=document, reset=TaskReset(7)) for task in tasks),
        tasks_revision=revision,
        ownerless=count,
    )


def told(bench: Bench) -> list[dict[str, TaskLag]]:
    """What was said of tasks that nobody owns."""
    return [request.tasks for request in bench.manager.asked(LagRequest)]


def reported(bench: Bench) -> dict[str, Any]:
    """The latest word on each task; a report without a lag leaves it as it was."""
    requests: list[ReportRequest] = bench.manager.asked(ReportRequest)
    latest: dict[str, Any] = {}
    for report in (report for request in requests for report in request.tasks):
        latest[report.task] = report.lag or latest.get(report.task)
    return latest


async def test_own_tasks_are_measured_and_reported(bench: Bench) -> None:
    """Again and again; a task of which nobody can tell is reported without it."""
    bench.engine.lags = {"t1": FAR}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1", "t2")
    await bench.clock.advance(EVERY_S + 2)
    assert reported(bench) == {"t1": FAR, "t2": None}
    bench.engine.lags["t1"] = TaskLag(at_ms=6, rows=3)
    await bench.clock.advance(EVERY_S + 2)
    assert reported(bench)["t1"].rows == 3


async def test_the_leader_measures_what_it_is_told_of_and_says_it_the_next_time(bench: Bench) -> None:
    """By its definition and its last reset, which say where its checkpoint is."""
    bench.engine.lags = {"orphan": FAR}
    bench.manager.rule(LagRequest, lambda _: ownerless("orphan"))
    bench.assign()
    await bench.clock.advance(2 * EVERY_S + 1)
    assert told(bench) == [{}, {"orphan": FAR}]
    assert bench.engine.measured == ["orphan", "orphan"]


async def test_who_measures_says_as_of_when_the_task_was_known(bench: Bench) -> None:
    """Of its own tasks by the claim that told of them, of those of nobody by the answer that named them."""
    bench.engine.lags = {"orphan": FAR, "t1": FAR}
    bench.manager.rule(LagRequest, lambda _: ownerless("orphan", revision=9))
    bench.grants(lambda _: ClaimResponse(granted=(granted("t1"),), tasks_revision=4))
    await bench.run("t1")
    await bench.clock.advance(2 * EVERY_S + 2)
    assert told(bench)[-1]["orphan"].tasks_revision == 9
    assert reported(bench)["t1"].tasks_revision == 4


async def test_a_task_that_reads_nothing_to_be_asked_any_more_has_no_lag(bench: Bench) -> None:
    """From its new definition on, and not from the next look on."""
    bench.engine.lags = {"t1": FAR}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1")
    await bench.clock.advance(EVERY_S + 2)
    assert lag_of(bench) == FAR
    await change(bench, sql="SELECT 2 AS two FROM source")
    assert lag_of(bench) is None
    assert bench.manager.reports("t1")[-1].lag is None


async def test_what_was_measured_by_a_former_definition_is_not_noted(background: BackgroundTasks) -> None:
    """The look began before the change, and ended after it."""
    engine = SlowEngine()
    bench = Bench(background, engine=engine)
    engine.clock, engine.lags, bench.engine = bench.clock, {"t1": FAR}, engine
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1")
    await bench.clock.advance(EVERY_S + 1)
    assert engine.measuring == ["t1"]
    await change(bench, sql="SELECT 2 AS two FROM source")
    await bench.clock.advance(EVERY_S)
    assert lag_of(bench) is None
    await bench.clock.advance(10 * EVERY_S)
    assert lag_of(bench) == FAR


async def test_of_what_can_be_asked_no_more_nothing_is_shown(bench: Bench) -> None:
    """A look that comes to nothing is a word, too."""
    bench.engine.lags = {"t1": FAR, "t2": FAR}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1")
    await bench.clock.advance(EVERY_S + 2)
    del bench.engine.lags["t1"]
    await bench.clock.advance(EVERY_S)
    assert lag_of(bench) is None


async def test_without_spark_what_is_known_stays_as_it_is(bench: Bench) -> None:
    """Nothing can be measured at the moment, and nothing is told of it; afterwards looks go on."""
    bench.engine.lags = {"t1": FAR}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1")
    await bench.clock.advance(EVERY_S + 2)
    bench.engine.cannot_measure = "Spark is not running"
    await bench.clock.advance(2 * EVERY_S)
    assert lag_of(bench) == FAR
    bench.engine.cannot_measure, bench.engine.lags = None, {"t1": TaskLag(at_ms=9, rows=1)}
    await bench.clock.advance(EVERY_S)
    assert lag_of(bench) == TaskLag(at_ms=9, rows=1)


def _always(answer: LagResponse | Failure) -> Callable[[LagRequest], LagResponse | Failure]:
    return lambda _: answer


async def test_who_does_not_lead_any_more_shows_no_tasks_of_nobody(bench: Bench) -> None:
    """Nor whoever hears from no manager whether they are nobody's still."""
    bench.engine.lags = {"orphan": FAR}
    for end in (LagResponse(), Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")):
        bench.manager.rule(LagRequest, lambda _: ownerless("orphan"))
        bench.assign()
        await bench.clock.advance(EVERY_S + 1)
        assert bench.runner.ownerless() == {"orphan": FAR}
        bench.manager.rule(LagRequest, _always(end))
        await bench.clock.advance(EVERY_S)
        assert bench.runner.ownerless() == {}


async def test_a_definition_that_cannot_be_read_is_left_out(bench: Bench) -> None:
    """It may be of a later version."""
    bench.engine.lags = {"orphan": FAR}
    bench.manager.rule(LagRequest, lambda _: ownerless("orphan", definition=b'{"later": 1}'))
    bench.assign()
    await bench.clock.advance(2 * EVERY_S + 1)
    assert told(bench) == [{}, {}]


async def test_who_can_measure_nothing_asks_for_nothing(bench: Bench) -> None:
    """A worker without a client of Kafka's, and one that is no member."""
    bench.assign()
    await bench.clock.advance(2 * EVERY_S + 1)
    bench.engine.lags = {"orphan": FAR}
    bench.assign(member="")
    await bench.clock.advance(2 * EVERY_S + 1)
    assert told(bench) == []


async def test_a_manager_that_does_not_answer_is_asked_again(bench: Bench) -> None:
    """What was measured meanwhile is old by then, and not told."""
    answers = iter([ownerless("orphan"), Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, ""), ownerless()])
    bench.engine.lags = {"orphan": FAR}
    bench.manager.rule(LagRequest, lambda _: next(answers))
    bench.assign()
    await bench.clock.advance(3 * EVERY_S + 1)
    assert told(bench) == [{}, {"orphan": FAR}, {}]


async def test_the_pause_between_looks_is_a_setting(background: BackgroundTasks) -> None:
    """In ms; whoever draws the lag looks more often."""
    bench = Bench(background, msgspec.structs.replace(SETTINGS, lag_interval_ms=500))
    bench.engine.lags = {"orphan": FAR}
    bench.manager.rule(LagRequest, lambda _: ownerless("orphan"))
    bench.assign()
    await bench.clock.advance(2.1)
    assert len(told(bench)) == 4


@pytest.mark.parametrize(("lag", "looks"), [(FAR, 1), (TaskLag(at_ms=5, trouble="no answer"), 3)])
async def test_only_answers_that_take_long_make_pauses_longer(
    background: BackgroundTasks, lag: TaskLag, looks: int
) -> None:
    """Of brokers that do not answer, one hears as soon as they do."""
    engine = SlowEngine()
    bench = Bench(background, engine=engine)
    engine.clock, engine.lags = bench.clock, {"orphan": lag}
    bench.manager.rule(LagRequest, lambda _: ownerless("orphan"))
    bench.assign()
    for _ in range(69):
        await bench.clock.advance(1.0)
    assert len(engine.measured) == looks


async def test_looks_that_take_minutes_still_follow_each_other_before_their_words_are_old(
    background: BackgroundTasks,
) -> None:
    """The manager shows a word for 15 minutes; a look of four minutes is not followed by a pause of 16."""
    engine = SlowEngine()
    bench = Bench(background, engine=engine)
    tasks = [f"t{number:02}" for number in range(24)]
    engine.clock, engine.lags = bench.clock, dict.fromkeys(tasks, FAR)
    bench.manager.rule(LagRequest, lambda _: ownerless(*tasks))
    bench.assign()
    for _ in range(840):
        await bench.clock.advance(1.0)
    assert engine.measuring.count("t00") == 2


async def test_a_round_of_many_looks_is_over_before_its_words_are_old(background: BackgroundTasks) -> None:
    """A look of two minutes at a quarter of the tasks is followed by a pause of half a minute."""
    engine = SlowEngine()
    bench = Bench(background, engine=engine)
    tasks = [f"t{number:02}" for number in range(12)]
    engine.clock, engine.lags = bench.clock, dict.fromkeys(tasks, FAR)
    bench.manager.rule(LagRequest, lambda _: ownerless(*tasks, count=48))
    bench.assign()
    for _ in range(600):
        await bench.clock.advance(1.0)
    assert engine.measuring.count("t00") == 4
