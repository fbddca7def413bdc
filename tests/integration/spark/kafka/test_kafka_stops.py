"""Stops of queries whose brokers are away; each broker is the test's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.kafka.conftest import TIMEOUT_S, orders, until
from tests.kafka import broker as kafka
from worker.spark.classic.query_session import ClassicQuerySession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.spark.conftest import Database
    from tests.kafka.broker import Broker

SQL = "SELECT offset FROM source"
PATIENT = {"kafka.default.api.timeout.ms": 3_600_000, "kafka.request.timeout.ms": 3_600_000}
"""As long as Spark would wait for an answer; a minute by Kafka's own settings."""


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Broker]:
    """A broker that a test may kill."""
    with kafka.running(tmp_path / "broker") as broker:
        yield broker


async def test_a_query_whose_brokers_are_gone_is_stopped_at_once(
    start: Any, catch_up: Any, mortal: Broker, database: Database
) -> None:
    """Of two sources, each of which waits for an answer as long as it may; the batches before it count."""
    topics = [mortal.topic(name) for name in ("a", "b")]
    for topic in topics:
        topic.produce(orders(3))
    sources = {topic.name: topic.source(options=PATIENT) for topic in topics}
    both = "SELECT offset FROM a UNION ALL SELECT offset FROM b"
    query = await start(sources=sources, sql=both, sink=database.sink())
    await catch_up(query)
    mortal.kill()
    await until(lambda: is_asking(query))
    async with asyncio.timeout(TIMEOUT_S):
        await query.stop(20)
    assert await query.ended() is None
    assert database.query("SELECT count(*) FROM flights") == [(6,)]


def is_asking(query: Any) -> bool:
    """Whether Spark waits for an answer about offsets."""
    return any("KafkaOffsetReader" in str(frame) for frame in query._handle._thread.getStackTrace())


async def test_a_batch_whose_rows_do_not_come_is_cut_in_time(
    start: Any, mortal: Broker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former owner has planned it, and its brokers are gone when it is done again.

    Spark would wait for them for two minutes.
    """
    topic = mortal.topic("a")
    topic.produce([b"no json"])
    value = {"format": "json", "schema": "id BIGINT"}
    query = await start(source=topic.source(value=value), sql="SELECT id FROM source", sink=database.sink())
    assert "cannot be taken apart" in str(await query.ended())
    begin = ClassicQuerySession.start

    def start_and_kill(self: Any, writer: Any, begun: Any) -> Any:
        mortal.kill()
        return begin(self, writer, begun)

    monkeypatch.setattr(ClassicQuerySession, "start", start_and_kill)
    value["on_error"] = "null"
    query = await start(source=topic.source(value=value), sql="SELECT id FROM source", sink=database.sink())
    await until(lambda: query._gate.is_occupied)
    async with asyncio.timeout(TIMEOUT_S):
        await query.stop(1)
    assert database.query("SELECT count(*) FROM flights") == [(0,)]
