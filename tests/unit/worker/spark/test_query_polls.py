"""What a running query's polls hear and pass on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

from definition.document import parse_definition
from worker.left_out import NOTHING, LeftOut
from worker.query_engine import QuerySpec
from worker.spark.launch import Launched
from worker.spark.query import SparkQuery

IDLE = {"latestOffset": 2, "triggerExecution": 3}
BUSY = {"addBatch": 200, "triggerExecution": 300}
DEFINITION = b'{"source": {"format": "rate"}, "sink": {"format": "console"}}'


def record(batch: int, durations: dict[str, int]) -> dict[str, Any]:
    return {"batchId": batch, "numInputRows": 1, "timestamp": "t", "durationMs": durations}


class Handle:
    """Of a query whose latest record is `told`, as often as it is asked."""

    interval_ms = None

    def __init__(self) -> None:
        self.told = record(0, BUSY)

    def spilled_bytes(self) -> int:
        return 4096

    def progress(self, after: int) -> list[dict[str, Any]]:
        return [self.told] if self.told["batchId"] > after else []

    def has_terminated(self) -> bool:
        return False

    def is_resting(self) -> bool:
        return True


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
