"""A task's progress as a consumer group, read by Kafka's own tool."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME
from structlog.testing import capture_logs

from tests.integration.spark.kafka.conftest import orders, until
from worker.lag.group_offsets import Kept, Mark, Outcome
from worker.spark.classic import kafka_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Its token is lower than the one beside the offsets, which says nothing of other topics."""
    brokers, group = engine._backend.brokers, f"{topic.name}-fenced"
    other = topic.broker.topic(f"{topic.name}-other")
    options = topic.source()["options"]

    def commit(name: str, offset: int, mark: Mark) -> Outcome:
        outcome: Outcome = brokers.commit(options, group, {name: {0: offset}}, mark)
        return outcome

    topic.produce(orders(9), partition=0)
    old, new, elsewhere = Mark("g", "t1", 19), Mark("g", "t1", 20), Mark("g", "t2", 3)
    assert await asyncio.to_thread(commit, topic.name, 5, new) == Outcome()
    assert await asyncio.to_thread(commit, topic.name, 3, old) == Outcome(is_fenced=True)
    assert await described(topic.broker, group) == {0: (5, 9, 4)}
    assert await asyncio.to_thread(commit, other.name, 0, elsewhere) == Outcome()
    assert await asyncio.to_thread(commit, topic.name, 7, elsewhere) == Outcome(
        kept=(Kept(topic.name, 0, new),)
    )
    assert await asyncio.to_thread(commit, topic.name, 6, new) == Outcome()
    assert offsets_of(topic.broker, group) == {(topic.name, 0): 6, (other.name, 0): 0}


async def test_more_offsets_than_a_request_takes_are_written_in_several(
    engine: Any, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers refuse a mebibyte of them at once."""
    monkeypatch.setattr(kafka_groups, "MOST_WRITTEN", 2)
    group, ends = f"{topic.name}-parts", {0: 1, 1: 0, 2: 2}
    for number, end in ends.items():
        topic.produce(orders(end), partition=number)
    before = engine.kafka_requests.get(("group", True), 0)
    assert await asyncio.to_thread(commit, engine, topic, group, ends) == Outcome()
    assert engine.kafka_requests["group", True] == before + 3
    assert offsets_of(topic.broker, group) == {(topic.name, number): end for number, end in ends.items()}


async def test_many_partitions_take_no_more_calls_into_the_jvm_than_few(engine: Any, topic: Topic) -> None:
    """All tasks of a worker share the thread that commits."""
    wide = topic.broker.topic(f"{topic.name}-wide", partitions=60)

    def calls(told: Topic, count: int) -> int:
        with counted_calls() as calls:
            assert commit(engine, told, f"{told.name}-calls", dict.fromkeys(range(count), 0)) == Outcome()
        return len(calls)

    await asyncio.to_thread(calls, topic, 3)  # names of classes are looked up once
    assert await asyncio.to_thread(calls, topic, 3) == await asyncio.to_thread(calls, wide, 60)


@pytest.mark.parametrize("metadata", ["", "two words", "%0A+ a\nline\r \u2028", "sparkherd g/t1 token 7\n"])
async def test_whatever_an_application_leaves_beside_an_offset_is_not_a_task_s(
    engine: Any, topic: Topic, metadata: str
) -> None:
    """It may be any text."""
    topic.produce(orders(2), partition=0)
    commit_as_an_application(topic, topic.name, 2, metadata)
    told = await asyncio.to_thread(commit, engine, topic, topic.name, {0: 1, 1: 1})
    assert told == Outcome(kept=(Kept(topic.name, 0, None),))
    assert offsets_of(topic.broker, topic.name) == {(topic.name, 0): 2}


async def test_tasks_and_sources_of_one_group_are_all_told(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """Two sources of one task and another task, a topic each, whoever has the higher token."""
    group = f"{topic.name}-shared"
    topics = [topic, *(topic.broker.topic(f"{topic.name}-{name}") for name in ("b", "c"))]
    for number, each in enumerate(topics, 1):
        each.produce(orders(number), partition=0)
    views = {name: each.source(commit_group=group) for name, each in zip("ab", topics[:2], strict=True)}
    both = "SELECT offset FROM a UNION ALL SELECT offset FROM b"
    await catch_up(await start(task="late", token=20, sources=views, sql=both, sink=database.sink()))
    one = topics[2].source(commit_group=group)
    await catch_up(await start(task="early", token=10, source=one, sql=SQL, sink=database.sink("more")))
    wanted = {(each.name, 0): number for number, each in enumerate(topics, 1)}
    await until(lambda: wanted.items() <= offsets_of(topic.broker, group).items())


async def test_what_another_application_has_committed_stays_and_the_task_says_so(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """A group without members is whoever has left its offsets there; the task writes once they are gone."""
    group = f"{topic.name}-theirs"
    topic.produce(orders(8), partition=0)
    commit_as_an_application(topic, group, 2)
    with capture_logs() as logs:
        query = await start(source=topic.source(commit_group=group), sql=SQL, sink=database.sink())
        await catch_up(query)
        await until(lambda: query.trouble is not None)
    assert offsets_of(topic.broker, group) == {(topic.name, 0): 2}
    assert query.trouble.startswith(
        f"source.commit_group: consumer group {group} keeps its offsets of topic {topic.name}, for that of"
        " partition 0 is not a task's: name another group, or delete them with"
    )
    assert len([line for line in logs if line["log_level"] == "warning" and "consumer_group" in line]) == 1
    command = query.trouble.partition("`")[2].partition("`")[0].split()
    await asyncio.to_thread(topic.broker.tool, *command)
    await until(lambda: query.trouble is None)
    await committed(topic.broker, group, {0: (8, 8, 0), 1: (0, 0, 0), 2: (0, 0, 0)})


async def test_a_group_with_members_hurts_no_batch_and_is_told_when_they_have_left(
    start: Any, catch_up: Any, topic: Topic, database: Database, engine: Any
) -> None:
    """Without another batch: the topic may have none for long."""
    group = f"{topic.name}-members"
    member = Consumer({"bootstrap.servers": topic.broker.bootstrap, "group.id": group, "log_level": 0})
    try:
        member.subscribe([topic.name])
        await until(lambda: member.poll(0.1) is None and bool(member.assignment()))
        topic.produce(orders(4), partition=0)
        query = await start(source=topic.source(commit_group=group), sql=SQL, sink=database.sink())
        await catch_up(query)
        await until(lambda: query.trouble is not None)
        assert "has members" in query.trouble
        assert database.query("SELECT count(*) FROM flights") == [(4,)]
    finally:
        member.close()
    await committed(topic.broker, group, {0: (4, 4, 0), 1: (0, 0, 0), 2: (0, 0, 0)})
    await until(lambda: query.trouble is None)
    assert engine.kafka_requests["group", False] >= 1


async def test_an_owner_that_starts_tells_the_group_what_the_one_before_could_not(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """By the checkpoint, though there is nothing to read any more; the group's offsets are gone meanwhile."""
    group = f"{topic.name}-heir"
    topic.produce(orders(6), partition=0)
    source = topic.source(commit_group=group)
    query = await start(token=7, source=source, sql=SQL, sink=database.sink())
    await catch_up(query)
    await until(lambda: bool(offsets_of(topic.broker, group)))
    await query.stop(20)
    await asyncio.to_thread(topic.broker.tool, "kafka-consumer-groups", "--delete", "--group", group)
    await start(task=query.spec.task, token=8, source=source, sql=SQL, sink=database.sink())
    await until(lambda: offsets_of(topic.broker, group).get((topic.name, 0)) == 6)


def offsets_of(broker: Broker, group: str) -> dict[tuple[str, int], int]:
    """What is committed in a group, by topic and partition."""
    admin = broker.admin()  # to be kept until the answer is there
    [asked] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(each.topic, each.partition): each.offset for each in asked.result(30).topic_partitions}


def commit(engine: Any, topic: Topic, group: str, ends: dict[int, int]) -> Outcome:
    """As task `t1` of group `g` does, under the token 7."""
    brokers, options = engine._backend.brokers, topic.source()["options"]
    outcome: Outcome = brokers.commit(options, group, {topic.name: ends}, Mark("g", "t1", 7))
    return outcome


@contextmanager
def counted_calls() -> Iterator[list[str]]:
    """What this thread asks of the JVM meanwhile, but for letting go of objects, at whatever time."""
    calls, send, mine = [], JavaClient.send_command, threading.get_ident()

    def counted(self: Any, command: str, *args: Any, **named: Any) -> Any:
        if threading.get_ident() == mine and not command.startswith(MEMORY_COMMAND_NAME):
            calls.append(command)
        return send(self, command, *args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counted)
        yield calls


def commit_as_an_application(topic: Topic, group: str, offset: int, metadata: str = "") -> None:
    """As one does that assigns partitions to itself, and so is no member of the group."""
    consumer = Consumer({"bootstrap.servers": topic.broker.bootstrap, "group.id": group, "log_level": 0})
    try:
        place = TopicPartition(topic.name, 0, offset, metadata)
        consumer.commit(offsets=[place], asynchronous=False)
    finally:
        consumer.close()
