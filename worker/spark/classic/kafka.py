"""What brokers say of the topics of a source, and what they are told of its progress.

A question is one request to each broker for the first offsets and one for the last; the times of unread rows
are a batch of rows for each partition that is behind, which is why they are asked for seldom and of few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from worker.lag.measure import PartitionState
from worker.lag.subscription import assigned_of, named_of, pattern_of
from worker.spark.classic.kafka_clients import KafkaClients
from worker.spark.classic.kafka_groups import ConsumerGroup
from worker.spark.classic.kafka_topics import KafkaTopics
from worker.spark.classic.kafka_watch import ClusterWatches
from worker.spark.kafka.brokers import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from worker.lag.group_offsets import Mark, Outcome
    from worker.lag.offset_log import Offsets
    from worker.spark.classic.kafka_clients import KafkaClient
    from worker.spark.classic.kafka_topics import Topic
    from worker.spark.classic.kafka_watch import Watching

MOST_TIMES: Final = 50
"""Partitions that are read from for the time of their first unread row, those that are furthest behind."""
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_ONE_ROW_EACH: Final = {
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "enable.auto.commit": "false",
    "auto.offset.reset": "none",
    "max.partition.fetch.bytes": "1",
    "max.poll.records": str(MOST_TIMES),
}
"""Settings of a consumer that is to get one row of each partition, as far as brokers send single ones."""
OAUTH_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""Kafka's property of a JVM: the URLs that OAUTHBEARER may fetch tokens from, commas between them."""


class KafkaBrokers:
    """Asks brokers, from threads that may wait."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        allow_no_oauth_urls(self._jvm)
        self.clients = KafkaClients(self._jvm)
        self._topics = KafkaTopics(self._jvm)
        self._watches = ClusterWatches(self.clients)

    def states(
        self, options: Mapping[str, Any], committed: Offsets, purpose: Question = Question.LAG
    ) -> dict[str, dict[int, PartitionState | None]]:
        """The partitions of the topics that a source with these options reads.

        Raises:
            QueryError: no broker answers in time, or lets nobody in; in one line.
        """
        with self.clients.asking(options, purpose) as client:
            described = self._described(client, options)
            cluster_id = self._cluster_id(client) if purpose is Question.START else None
            partitions = _partitions(described, options)
            level = isolation(client.config)
            led = [(topic, number) for topic, number in partitions if number not in described[topic].unled]
            begins = self._topics.offsets(client, led, "earliest", level)
            ends = self._topics.offsets(client, begins, "latest", level)
            times = self._times(client, _unread(committed, begins, ends))
        states: dict[str, dict[int, PartitionState | None]] = {topic: {} for topic in described}
        for place in partitions:
            topic, number = place
            ids = described[topic].topic_id, cluster_id
            states[topic][number] = (
                PartitionState(begins[place], ends[place], times.get(place), *ids) if place in ends else None
            )
        return states

    def commit(
        self, options: Mapping[str, Any], consumer_group: str, offsets: Offsets, mark: Mark
    ) -> Outcome:
        """By a look, and a write of what may be written."""
        with self.clients.asking(options, Question.GROUP) as client:
            return ConsumerGroup(client, self._topics, consumer_group).commit(offsets, mark)

    def watch(self, options: Mapping[str, Any]) -> Watching:
        """Ask the source's cluster every few seconds whether it answers."""
        return self._watches.join(options)

    def requests(self) -> Mapping[tuple[str, bool], int]:
        """As its clients have counted them."""
        return self.clients.requests()

    def close(self) -> None:
        """Let go of all clients."""
        self._watches.close()
        self.clients.close()

    def _described(self, client: KafkaClient, options: Mapping[str, Any]) -> dict[str, Topic]:
        """Those of the topics that are there; asked for by name, one that is not would be an error."""
        there = client.answer(client.admin.listTopics().names(), of_any=True)
        pattern = pattern_of(options)
        names = named_of(options) if pattern is None else self._topics.matching(there, pattern)
        wanted = self._topics.named(there, names)
        found = client.answer(client.admin.describeTopics(wanted).allTopicNames())
        return self._topics.described(found)

    def _cluster_id(self, client: KafkaClient) -> str | None:
        found = client.answer(client.admin.describeCluster().clusterId(), of_any=True)
        return None if found is None else str(found)

    def _times(
        self, client: KafkaClient, positions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """When the first unread row of each was written, as far as it can be read in time.

        Rows may be deleted while they are looked at: how much is unread is known all the same.
        """
        if not positions:
            return {}
        settings = self.clients.java_map({**client.config, **_ONE_ROW_EACH})
        try:
            return self._topics.first_times(client, settings, positions)
        except Py4JJavaError:
            client.count(answered=False)
            return {}


def allow_no_oauth_urls(jvm: Any) -> None:
    """Have Kafka's clients in this JVM fetch tokens from no URL, unless whoever started it has named some.

    A definition names the URL, and what is found there comes back in the error. Kafka 4 begins so, too.
    """
    system = jvm.java.lang.System
    if system.getProperty(OAUTH_URLS) is None:
        system.setProperty(OAUTH_URLS, "")


def isolation(config: Mapping[str, str]) -> str:
    """The level at which the source reads: rows of open transactions are not there for `READ_COMMITTED`."""
    return config.get("isolation.level", "read_uncommitted").upper()


def _partitions(topics: Mapping[str, Topic], options: Mapping[str, Any]) -> list[tuple[str, int]]:
    assigned = assigned_of(options)
    return [
        (name, number)
        for name, topic in topics.items()
        for number in range(topic.partitions)
        if assigned is None or number in assigned[name]
    ]


def _unread(
    committed: Offsets, begins: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """Where the first unread row is, of those partitions that are furthest behind."""
    at = {
        (topic, number): max(committed[topic].get(number, 0), begins[topic, number])
        for topic, number in ends
        if topic in committed
    }
    behind = [
        place for place in sorted(at, key=lambda each: at[each] - ends[each]) if at[place] < ends[place]
    ]
    return {place: at[place] for place in behind[:MOST_TIMES]}
