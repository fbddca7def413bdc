"""Does the errands that there are, within their time, and says how they went: by the example of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.errands import ErrandKind
from protocol.errors import ErrorCode
from protocol.messages.quarantine import UNHEARD, QuarantineAnswer
from tests.fakes.manager import failure
from tests.fakes.turns import settle
from tests.unit.worker.errands.bench import Bench
from tests.unit.worker.quarantined_rows.rows import row
from worker.background import BackgroundTasks
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with BackgroundTasks() as background:
        yield Bench(background)


async def test_a_check_is_fetched_done_and_reported(bench: Bench) -> None:
    """With all that was wanted."""
    await bench.check("c1")
    [spec] = bench.engine.checks
    assert (spec.group, spec.rows, spec.begin) == ("g", 10, "end")
    assert bench.outcome == bench.engine.check_result
    [told] = bench.manager.reported
    assert (told.member_id, told.errand) == ("me", "c1")


async def test_its_time_is_over(bench: Bench) -> None:
    """The engine is told to let it be, and what it was waiting for is said."""
    bench.engine.check_gate.clear()
    await bench.check("c1")
    await bench.clock.advance(4.9)
    assert bench.manager.reported == []
    await bench.clock.advance(0.2)
    assert bench.engine.checks_given_up == 1
    assert bench.outcome.code == "CHECK_TIMED_OUT"
    assert bench.outcome.message == "it was given up after 5.0 s, and was waiting for the gate of checks"


@pytest.mark.parametrize("next_one", [None, "c2"])
async def test_another_one_or_none_ends_the_one_before(bench: Bench, next_one: str | None) -> None:
    """Nobody waits for that any more, so nothing is said of it."""
    bench.engine.check_gate.clear()
    await bench.check("c1")
    await bench.check(next_one)
    assert bench.engine.checks_given_up == 1
    bench.engine.check_gate.set()
    await settle()
    assert [told.errand for told in bench.manager.reported] == ([next_one] if next_one else [])


async def test_trouble_on_the_way_passes(bench: Bench) -> None:
    """Both requests are made again; one that is over is dropped."""
    bench.manager.trouble = [failure(ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    await bench.check("c1")
    assert len(bench.manager.fetched) == 1
    bench.manager.trouble = [failure(ErrorCode.NOT_COORDINATOR)]
    await bench.clock.advance(0.2)
    await bench.clock.advance(0.4)
    assert len(bench.manager.fetched) == 3
    assert len(bench.manager.reported) == 1
    bench.manager.trouble = [failure(ErrorCode.UNKNOWN_CHECK)]
    await bench.check("c2")
    await bench.clock.advance(10)
    assert len(bench.engine.checks) == 1


async def test_a_lost_engine_is_told(bench: Bench) -> None:
    """In one line, without secrets."""
    bench.engine.check_result = QueryError("Spark is gone: url://u:hunter22@h\nwith a trace")
    await bench.check("c1")
    assert (bench.outcome.code, bench.outcome.message) == (
        "CHECK_INTERRUPTED",
        "Spark is gone: url://u:***@h",
    )


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"new": 1}, "new"),
        (
            {"spark_conf": {"spark.datasource.iceberg.url": "jdbc:derby:x"}},
            'spark_conf["spark.datasource.iceberg.url"]',
        ),
    ],
)
async def test_a_definition_of_another_version(bench: Bench, more: dict[str, Any], path: str) -> None:
    """The manager took it, this worker does not: what it does not know, or refuses, is the problem."""
    document = {"source": {"format": "rate"}, "sink": {"format": "noop"}, **more}
    bench.manager.check(document)
    await bench.check("c1")
    assert [problem.path for problem in bench.outcome.problems] == [path]
    assert bench.engine.checks == []


@pytest.mark.parametrize("ends", [None, "c2"])
async def test_a_long_replay_is_not_cut_by_a_check(bench: Bench, ends: str | None) -> None:
    """Each kind goes on beside the other, whatever is told of that."""
    bench.engine.quarantine_gate.clear()
    bench.manager.quarantine("replay")
    await bench.take(ErrandKind.QUARANTINE, "q1")
    await bench.check("c1")
    await bench.check(ends)
    assert bench.engine.quarantine_given_up == 0
    bench.engine.quarantine_gate.set()
    await settle()
    assert [told.kind for told in bench.manager.reported][-1] is ErrandKind.QUARANTINE


async def test_a_surprise_does_not_end_the_worker(bench: Bench) -> None:
    """Its tasks run on; whoever asked is told where more of it stands."""
    bench.engine.quarantine_answer = RuntimeError("of a plug-in's")
    bench.manager.quarantine("replay")
    with capture_logs() as logs:
        await bench.take(ErrandKind.QUARANTINE, "q1")
    [line] = [each for each in logs if each["log_level"] == "error"]
    assert bench.outcome.code == "QUARANTINE_INTERRUPTED"
    assert bench.outcome.message == f"a bug; the worker's log has more under {line['cause_id']}{UNHEARD}"


async def test_a_result_that_the_manager_would_refuse_is_not_kept_from_whoever_waits(bench: Bench) -> None:
    """They need not wait for the time-out."""
    bench.engine.quarantine_answer = QuarantineAnswer(rows=(row(id="no id"),))
    bench.manager.quarantine("list")
    await bench.take(ErrandKind.QUARANTINE, "q1")
    assert bench.outcome.code == "QUARANTINE_INTERRUPTED"
    assert bench.outcome.message.startswith("the worker's result cannot be told: ")
