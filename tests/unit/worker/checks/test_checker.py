"""Does the check that there is, within its time, and says what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.base import Response
from protocol.messages.checks import FetchCheckResponse
from tests.fakes.clock import FakeClock
from tests.fakes.manager import failure
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import settle
from worker.background import BackgroundTasks
from worker.checks.checker import Checker
from worker.membership.events import Identity
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from protocol.messages.checks import FetchCheckRequest, ReportCheckRequest

DEFINITION = msgspec.Raw(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')
ME = Identity("me", 3)


class Manager:
    """Has checks, unless it is in trouble."""

    def __init__(self) -> None:
        self.definition = DEFINITION
        self.trouble: list[Failure] = []
        self.fetched: list[FetchCheckRequest] = []
        self.reported: list[ReportCheckRequest] = []

    async def fetch_check(self, request: FetchCheckRequest) -> FetchCheckResponse | Failure:
        self.fetched.append(request)
        if self.trouble:
            return self.trouble.pop(0)
        return FetchCheckResponse(definition=self.definition, rows=10, begin="end", timeout_ms=5000)

    async def report_check(self, request: ReportCheckRequest) -> Response | Failure:
        self.reported.append(request)
        return self.trouble.pop(0) if self.trouble else Response()


class Bench:
    def __init__(self, background: BackgroundTasks) -> None:
        self.manager = Manager()
        self.engine = FakeEngine()
        self.clock = FakeClock()
        self.checker = Checker(
            self.manager,
            self.engine,
            group="g",
            instance_id=None,
            clock=self.clock,
            chance=lambda: 0.5,
            spawn=background.spawn,
        )

    async def take(self, check: str | None) -> None:
        self.checker.take(ME, check)
        await settle()

    @property
    def outcome(self) -> Any:
        [told] = self.manager.reported
        return told.result or told.trouble


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with BackgroundTasks() as background:
        yield Bench(background)


async def test_a_check_is_fetched_done_and_reported(bench: Bench) -> None:
    """With all that was wanted."""
    await bench.take("c1")
    [spec] = bench.engine.checks
    assert (spec.group, spec.rows, spec.begin) == ("g", 10, "end")
    assert bench.outcome == bench.engine.check_result
    [told] = bench.manager.reported
    assert (told.member_id, told.check) == ("me", "c1")


async def test_its_time_is_over(bench: Bench) -> None:
    """The engine is told to let it be, and what it was waiting for is said."""
    bench.engine.check_gate.clear()
    await bench.take("c1")
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
    await bench.take("c1")
    await bench.take(next_one)
    assert bench.engine.checks_given_up == 1
    bench.engine.check_gate.set()
    await settle()
    assert [told.check for told in bench.manager.reported] == ([next_one] if next_one else [])


async def test_trouble_on_the_way_passes(bench: Bench) -> None:
    """Both requests are made again; one that is over is dropped."""
    bench.manager.trouble = [failure(ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    await bench.take("c1")
    assert len(bench.manager.fetched) == 1
    bench.manager.trouble = [failure(ErrorCode.NOT_COORDINATOR)]
    await bench.clock.advance(0.2)
    await bench.clock.advance(0.4)
    assert len(bench.manager.fetched) == 3
    assert len(bench.manager.reported) == 1
    bench.manager.trouble = [failure(ErrorCode.UNKNOWN_CHECK)]
    await bench.take("c2")
    await bench.clock.advance(10)
    assert len(bench.engine.checks) == 1


async def test_a_lost_engine_is_told(bench: Bench) -> None:
    """In one line, without secrets."""
    bench.engine.check_result = QueryError("Spark is gone: url://u:hunter22@h\nwith a trace")
    await bench.take("c1")
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
    bench.manager.definition = msgspec.Raw(msgspec.json.encode(document))
    await bench.take("c1")
    assert [problem.path for problem in bench.outcome.problems] == [path]
    assert bench.engine.checks == []
