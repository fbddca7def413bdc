"""What a running query's polls hear and pass on."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from definition.document import parse_definition
from tests.fakes.clock import FakeClock
from worker.left_out import NOTHING, LeftOut
from worker.query_engine import QuerySpec, Stall
from worker.spark.backend import Activity
from worker.spark.launch import Launched
from worker.spark.query import SparkQuery
from worker.spark.whereabouts import Whereabouts

IDLE = {"latestOffset": 2, "triggerExecution": 3}
BUSY = {"addBatch": 200, "triggerExecution": 300}
DEFINITION = b'{"source": {"format": "rate"}, "sink": {"format": "console"}}'


def record(batch: int, durations: dict[str, int], at: str = "t") -> dict[str, Any]:
    return {"batchId": batch, "numInputRows": 1, "timestamp": at, "durationMs": durations}


class Handle:
    """Of a query whose latest record is `told`, as often as it is asked."""

    interval_ms = None

    def __init__(self) -> None:
        self.told = record(0, BUSY)
        self.at = Activity.RESTING

    def spilled_bytes(self) -> int:
        return 4096

    def progress(self, after: int) -> list[dict[str, Any]]:
        return [self.told] if self.told["batchId"] > after else []

    def has_terminated(self) -> bool:
        return False

    def activity(self) -> Activity:
        return self.at

    def whereabouts(self) -> Whereabouts:
        return Whereabouts("it is here")


async def test_a_finished_batch_is_passed_on_once() -> None:
    """Spark's record of a query that waits for rows has the number of the batch to come, at every poll."""
    handle = Handle()
    heard: list[Any] = []
    session = SimpleNamespace(gate=None, output=SimpleNamespace(total=None, left_out=NOTHING))
    launched = Launched(cast("Any", handle), cast("Any", session), None, None, heard.append)
    spec = QuerySpec("g", "t", 1, parse_definition(DEFINITION))
    with ThreadPoolExecutor(1) as pool:
        query = SparkQuery(spec, launched, asyncio.get_running_loop(), pool)
        for batch, durations in ((0, BUSY), (1, IDLE), (1, BUSY), (2, IDLE)):
            handle.told = record(batch, durations)
            for _ in range(3):
                query.poll()
    assert [each["batchId"] for each in heard] == [0, 1]


async def test_what_was_left_out_is_told_with_the_batch() -> None:
    """As the way out of the query has it by then."""
    handle = Handle()
    left_out = LeftOut(1, 2, {"positive": 3})
    session = SimpleNamespace(gate=None, output=SimpleNamespace(total=None, left_out=left_out))
    launched = Launched(cast("Any", handle), cast("Any", session), None, None, lambda _: None)
    spec = QuerySpec("g", "t", 1, parse_definition(DEFINITION))
    with ThreadPoolExecutor(1) as pool:
        query = SparkQuery(spec, launched, asyncio.get_running_loop(), pool)
        handle.told = record(0, BUSY)
        query.poll()
    progress = query.progress()
    assert progress is not None
    assert progress.totals.left_out == left_out
    assert progress.totals.costs.spilled_bytes == 4096


@pytest.mark.parametrize("at", [Activity.WORKING, Activity.LOOKING])
async def test_a_query_that_gets_no_batch_done_is_asked_where_it_is(
    at: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a thread of its own; a record of Spark's that is new takes back what was told."""
    monkeypatch.setattr("worker.spark.stalls.in_thread", at_once)
    handle, clock = Handle(), FakeClock()
    session = SimpleNamespace(gate=None, output=SimpleNamespace(total=None, left_out=NOTHING))
    launched = Launched(cast("Any", handle), cast("Any", session), None, None)
    document = DEFINITION.replace(b"}}", b'}, "limits": {"hung_s": 60}}')
    spec = QuerySpec("g", "t", 1, parse_definition(document))
    with ThreadPoolExecutor(1) as pool:
        query = SparkQuery(spec, launched, asyncio.get_running_loop(), pool, clock.now)
        handle.at = at
        handle.told = record(0, IDLE)
        for _ in range(130):
            query.poll()
            await clock.advance(1)
        stall = query.stall
        assert stall is not None
        assert stall.where == "it is here"
        assert query.trouble == str(stall)
        handle.told = record(0, IDLE, at="later")
        query.poll()
        assert [query.stall, query.trouble] == [None, None]


def at_once(_name: str, function: Any) -> Future[Any]:
    """A thread that is through before anybody looks."""
    future: Future[Any] = Future()
    future.set_result(function())
    return future


async def test_what_its_brokers_are_wrong_with_counts_for_more() -> None:
    """Where it is follows from that."""
    handle = Handle()
    session = SimpleNamespace(gate=None, output=SimpleNamespace(total=None, left_out=NOTHING))
    watched = [SimpleNamespace(trouble="no broker answers")]
    launched = Launched(cast("Any", handle), cast("Any", session), None, None, watched=cast("Any", watched))
    spec = QuerySpec("g", "t", 1, parse_definition(DEFINITION))
    with ThreadPoolExecutor(1) as pool:
        query = SparkQuery(spec, launched, asyncio.get_running_loop(), pool)
        query._stalls = cast("Any", SimpleNamespace(stall=Stall(301)))
        assert query.trouble == "no broker answers"
        watched[0].trouble = None
        assert query.trouble == "no batch has finished for 301 s though there is work"
