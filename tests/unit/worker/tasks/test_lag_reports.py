"""When brokers are asked, of which tasks, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.lag import TaskLag
from protocol.messages.ownership import LagRequest, LagResponse, OwnerlessTask, ReportRequest
from protocol.messages.tasks import TaskReset
from tests.fakes.manager import DEFINITION
from tests.fakes.query_engine import FakeEngine
from tests.unit.worker.tasks.bench import SETTINGS, Bench

if TYPE_CHECKING:
    from tests.fakes.clock import FakeClock
    from worker.background import BackgroundTasks
    from worker.query_engine import QuerySpec

EVERY_S = 10.0
FAR = TaskLag(at_ms=5, rows=100)


def ownerless(*tasks: str, definition: bytes | None = None) -> LagResponse:
    """What the manager has the leader measure."""
    document = msgspec.Raw(definition or msgspec.json.encode(DEFINITION))
    return LagResponse(
        tasks=tuple(OwnerlessTask(task=task, definition=document, reset=TaskReset(7)) for task in tasks)
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


class SlowEngine(FakeEngine):
    """Whose looks take ten seconds."""

    clock: FakeClock

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        await self.clock.sleep(10.0)
        return await super().lag(spec)


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
