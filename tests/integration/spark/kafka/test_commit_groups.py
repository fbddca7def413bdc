"""A task's progress as a consumer group, read by Kafka's own tool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer
from structlog.testing import capture_logs

from tests.integration.spark.kafka.conftest import orders, until

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database
    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic

SQL = "SELECT offset FROM source"


async def described(broker: Broker, group: str) -> dict[int, tuple[int, int, int]]:
    """Committed offset, end and lag of each partition, as `kafka-consumer-groups --describe` prints them."""
    said = await asyncio.to_thread(broker.tool, "kafka-consumer-groups", "--describe", "--group", group)
    rows = [line.split() for line in said.splitlines() if line.startswith(f"{group} ")]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows}


async def committed(broker: Broker, group: str, wanted: dict[int, tuple[int, int, int]]) -> None:
    """Wait until the tool prints that; each look takes it a second."""
    for _ in range(30):
        if await described(broker, group) == wanted:
            return
    assert await described(broker, group) == wanted


async def test_kafka_s_own_tool_sees_how_far_a_task_has_come(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """After each batch; what is put there later is lag, as of any consumer."""
    group = f"{topic.name}-progress"
    source = topic.source(commit_group=group)
    topic.produce(orders(8), partition=0)
    query = await start(source=source, sql=SQL, sink=database.sink())
    await catch_up(query)
    await committed(topic.broker, group, {0: (8, 8, 0), 1: (0, 0, 0), 2: (0, 0, 0)})
    await query.stop(20)
    topic.produce(orders(5), partition=0)
    await committed(topic.broker, group, {0: (8, 13, 5), 1: (0, 0, 0), 2: (0, 0, 0)})


async def test_a_former_owner_does_not_put_the_group_back(engine: Any, topic: Topic) -> None:
    """Its token is lower than the one beside the offsets."""
    brokers, group = engine._backend.brokers, f"{topic.name}-fenced"
    options = topic.source()["options"]

    def commit(offset: int, token: int) -> bool:
        written: bool = brokers.commit(options, group, {topic.name: {0: offset}}, token)
        return written

    topic.produce(orders(9), partition=0)
    assert await asyncio.to_thread(commit, 5, 20)
    assert not await asyncio.to_thread(commit, 3, 19)
    assert await described(topic.broker, group) == {0: (5, 9, 4)}
    assert await asyncio.to_thread(commit, 6, 20)
    assert await described(topic.broker, group) == {0: (6, 9, 3)}


async def test_a_group_that_refuses_hurts_no_batch_and_is_made_up_for_by_the_next(
    start: Any, catch_up: Any, topic: Topic, database: Database, engine: Any
) -> None:
    """One with a member belongs to that: a warning, and the offsets are there once it has left."""
    group = f"{topic.name}-members"
    member = Consumer({"bootstrap.servers": topic.broker.bootstrap, "group.id": group, "log_level": 0})
    try:
        member.subscribe([topic.name])
        await until(lambda: member.poll(0.1) is None and bool(member.assignment()))
        topic.produce(orders(4), partition=0)
        query = await start(source=topic.source(commit_group=group), sql=SQL, sink=database.sink())
        with capture_logs() as logs:
            await catch_up(query)
            await until(lambda: any(line.get("consumer_group") == group for line in logs))
        [line] = [line for line in logs if line.get("consumer_group") == group]
        assert line["log_level"] == "warning"
        assert "UnknownMemberIdException" in line["why"]
        assert database.query("SELECT count(*) FROM flights") == [(4,)]
    finally:
        member.close()
    topic.produce(orders(3), partition=0)
    await catch_up(query)
    await committed(topic.broker, group, {0: (7, 7, 0), 1: (0, 0, 0), 2: (0, 0, 0)})
    assert engine.kafka_requests["group", False] >= 1
