"""Warming a real Spark before the worker joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs
from structlog.testing import capture_logs

from tests.integration.spark.conftest import TIMEOUT_S
from worker.spark.warm_up import warm_up

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Lease
    from worker.query_engine import QuerySpec
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery
    from worker.spark.settings import SparkSettings


async def test_a_batch_of_each_start_comes_into_its_sink(engine: SparkEngine, lease: Lease) -> None:
    """By source, state, fence and checkpoint, and from that again; without a lease, which comes later."""
    queries: list[SparkQuery] = []

    async def start(spec: QuerySpec, settings: SparkSettings) -> SparkQuery:
        queries.append(query := await engine._start_small(spec, settings))
        return query

    lease.holds = False
    try:
        with capture_logs() as logs:
            await warm_up(start, structs.replace(engine._settings, warm_up_s=TIMEOUT_S))
    finally:
        lease.holds = True
    assert [line["event"] for line in logs] == ["spark is warm"]
    assert [query.committed for query in queries] == [None, 0]
    assert all((progress := query.progress()) is not None and progress.totals.rows for query in queries)
