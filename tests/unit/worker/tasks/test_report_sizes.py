"""Whatever there is to tell of tasks, it is told in requests that the manager takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from protocol.errors import ErrorCode
from protocol.messages.lag import MOST_PARTITIONS, PartitionLag, TaskLag
from protocol.messages.ownership import (
    LagRequest,
    LagResponse,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
    TaskReport,
)
from tests.fakes.manager import accept_all, failure
from tests.unit.worker.tasks.test_lag_reports import EVERY_S, ownerless
from worker.tasks.exchange import releases
from worker.tasks.exchange.batches import MOST_BYTES, encoded_size, in_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errors import Failure
    from tests.unit.worker.tasks.bench import Bench

DEFAULT_BYTES = 8 << 20
"""Of `--max-request-bytes`."""
TASKS = tuple(f"t{number:03}" for number in range(200))


def large(at_ms: int = 1) -> TaskLag:
    """All the partitions that are told one by one, of a topic with a name of full length."""
    partitions = tuple(
        PartitionLag(topic="t" * 249, partition=each, committed=0, end=9, behind=9)
        for each in range(MOST_PARTITIONS)
    )
    return TaskLag(at_ms=at_ms, rows=9 * MOST_PARTITIONS, partitions=partitions)


def takes(bytes_: int) -> Callable[[ReportRequest], TaskErrorsResponse | Failure]:
    """A manager that accepts reports in bodies of that size and refuses larger ones."""

    def answer(request: ReportRequest) -> TaskErrorsResponse | Failure:
        if encoded_size(request) > bytes_:
            return failure(ErrorCode.PAYLOAD_TOO_LARGE, limit_bytes=bytes_)
        return accept_all(request)

    return answer


def taken(bench: Bench, bytes_: int) -> list[TaskReport]:
    """The reports in bodies that are no larger than that."""
    requests = [each for each in bench.manager.asked(ReportRequest) if encoded_size(each) <= bytes_]
    return [report for request in requests for report in request.tasks]


def lags(reports: list[TaskReport]) -> dict[str, TaskLag]:
    """The latest one of each task; a report without one leaves it as it was."""
    return {report.task: report.lag for report in reports if report.lag is not None}


async def test_lags_of_many_partitions_fit_into_what_a_manager_takes(bench: Bench) -> None:
    """200 tasks with 200 partitions each: 17 MB, told in bodies of which none is refused."""
    bench.engine.lags = dict.fromkeys(TASKS, large())
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run(*TASKS)
    await bench.clock.advance(EVERY_S + 2)
    assert lags(taken(bench, DEFAULT_BYTES)) == bench.engine.lags
    assert max(map(encoded_size, bench.manager.asked(ReportRequest))) < 2 * MOST_BYTES


async def test_a_manager_that_takes_less_is_told_in_smaller_parts_from_then_on(bench: Bench) -> None:
    """Half as much, until it is taken; the next reports do not begin with what was refused."""
    limit = 300_000
    bench.manager.rule(ReportRequest, takes(limit))
    bench.engine.lags = dict.fromkeys(TASKS[:20], large())
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run(*TASKS[:20])
    await bench.clock.advance(EVERY_S + 2)
    assert lags(taken(bench, limit)) == bench.engine.lags
    bench.engine.lags = dict.fromkeys(TASKS[:20], large(at_ms=2))
    before = len(bench.manager.requests)
    await bench.clock.advance(EVERY_S + 2)
    later = [each for each in bench.manager.requests[before:] if isinstance(each, ReportRequest)]
    assert lags(taken(bench, limit)) == bench.engine.lags
    assert max(map(encoded_size, later)) <= limit


async def test_one_report_that_is_too_large_is_sent_without_its_partitions(bench: Bench) -> None:
    """Its sums are told, and how many partitions are not; the other tasks are told of as ever."""
    limit = 20_000
    bench.manager.rule(ReportRequest, takes(limit))
    bench.engine.lags = {"t1": large(), "t2": TaskLag(at_ms=1, rows=3)}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1", "t2")
    await bench.clock.advance(EVERY_S + 2)
    assert lags(taken(bench, limit)) == {
        "t1": TaskLag(at_ms=1, rows=9 * MOST_PARTITIONS, left_out=MOST_PARTITIONS),
        "t2": TaskLag(at_ms=1, rows=3),
    }
    told = sum(report.lag is not None for report in bench.manager.reports("t1"))
    await bench.clock.advance(5)
    assert sum(report.lag is not None for report in bench.manager.reports("t1")) == told  # it is known


async def test_a_cause_that_is_too_large_is_cut(bench: Bench) -> None:
    """The first characters of a failure are told rather than nothing of the worker's tasks for ever."""
    limit = 2_000
    bench.manager.rule(ReportRequest, takes(limit))
    bench.engine.broken, bench.engine.permanent = {"t1": "no such table " + "x" * 10_000}, {"t1"}
    bench.assign("t1")
    await bench.clock.advance(2)
    told = taken(bench, limit)[-1]
    assert (told.state.value, (told.cause or "")[:13]) == ("FAILED", "no such table")


async def test_a_lag_is_sent_once(bench: Bench) -> None:
    """Reports of everything, and those of a new batch, are a hundredth of its size."""
    bench.engine.lags = {"t1": large()}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    [query] = await bench.run("t1")
    await bench.clock.advance(EVERY_S + 1.5)
    query.advance(4)
    await bench.clock.advance(EVERY_S - 3)
    told = [report.lag for report in bench.manager.reports("t1")]
    assert told.count(large()) == 1
    assert len(told) - told.index(large()) > 2


async def test_a_lag_whose_report_was_lost_is_sent_again(bench: Bench) -> None:
    """Only what the manager has acknowledged is left out."""
    bench.engine.lags = {"t1": large()}
    bench.manager.rule(LagRequest, lambda _: LagResponse())
    await bench.run("t1")
    bench.manager.rule(ReportRequest, lambda _: failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await bench.clock.advance(EVERY_S + 2)
    bench.manager.rule(ReportRequest, accept_all)
    before = len(bench.manager.reports("t1"))
    await bench.clock.advance(2)
    assert bench.manager.reports("t1")[before].lag == large()


@pytest.mark.parametrize("limit", [DEFAULT_BYTES, 300_000, 20_000])
async def test_what_the_leader_has_measured_fits_too(bench: Bench, limit: int) -> None:
    """A hundred ownerless tasks with 200 partitions each; by their sums where one alone is too large."""

    def answer(request: LagRequest) -> LagResponse | Failure:
        if encoded_size(request) > limit:
            return failure(ErrorCode.PAYLOAD_TOO_LARGE, limit_bytes=limit)
        return ownerless(*TASKS[:100])

    bench.engine.lags = dict.fromkeys(TASKS[:100], large())
    bench.manager.rule(LagRequest, answer)
    bench.assign()
    await bench.clock.advance(2 * EVERY_S + 1)
    requests = [each for each in bench.manager.asked(LagRequest) if encoded_size(each) <= limit]
    told = {task: lag.rows for request in requests for task, lag in request.tasks.items()}
    assert told == dict.fromkeys(TASKS[:100], large().rows)


@pytest.mark.parametrize("limit", [DEFAULT_BYTES, 300_000, 20_000])
async def test_what_the_leader_is_asked_for_is_measured_however_much_it_has_to_tell(
    bench: Bench, limit: int
) -> None:
    """The manager takes what it has named for measured soon, and names it again after all the others."""
    asked: list[str] = []

    def answer(request: LagRequest) -> LagResponse | Failure:
        if encoded_size(request) > limit:
            return failure(ErrorCode.PAYLOAD_TOO_LARGE, limit_bytes=limit)
        if request.more:
            return LagResponse()
        some = TASKS[len(asked) : len(asked) + 50]
        asked.extend(some)
        return ownerless(*some)

    bench.engine.lags = dict.fromkeys(TASKS, large())
    bench.manager.rule(LagRequest, answer)
    bench.assign()
    await bench.clock.advance(4 * EVERY_S + 1)
    assert bench.engine.measured == asked == list(TASKS)


async def test_releases_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are made, so many at once."""
    monkeypatch.setattr(releases, "MOST_AT_ONCE", 2)
    await bench.run("t1", "t2", "t3", "t4", "t5")
    bench.assign()
    await bench.clock.advance(1)
    assert set(bench.released) == {"t1", "t2", "t3", "t4", "t5"}
    assert max(len(each.tasks) for each in bench.manager.asked(ReleaseRequest)) == 2


def test_batches_keep_the_order_and_both_bounds() -> None:
    """An item that is larger than a batch may be is a batch of its own."""
    assert list(in_batches("aaaaa", lambda _: 1, most=2)) == [["a", "a"], ["a", "a"], ["a"]]
    cut = in_batches([3, 4, 9, 1, 2], lambda each: each, most=10, most_bytes=lambda: 7)
    assert list(cut) == [[3, 4], [9], [1, 2]]
    assert list(in_batches([], lambda _: 1, most=1)) == []
    assert encoded_size({"a": 1}) == len(msgspec.json.encode({"a": 1}))
