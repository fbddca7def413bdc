"""One consumer group of Kafka's: what is committed in it, and what is to be."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError

from worker.lag.group_offsets import Outcome, judge
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.lag.group_offsets import Mark, Place
    from worker.lag.offset_log import Offsets
    from worker.spark.classic.kafka_clients import KafkaClient
    from worker.spark.classic.kafka_topics import KafkaTopics

_HAS_MEMBERS: Final = "UnknownMemberIdException: "
"""Brokers take offsets from outside only for a group without members."""
MOST_WRITTEN: Final = 500
"""Offsets in one request. Brokers write those as one batch of rows, of 1 MiB at most, and refuse what is more
(`UNKNOWN_SERVER_ERROR`); with the longest names an offset and its mark take 1 to 2 KiB."""


class ConsumerGroup:
    """Looked at and written through one client, which counts the questions; in bulk."""

    def __init__(self, client: KafkaClient, topics: KafkaTopics, name: str) -> None:
        self._client = client
        self._topics = topics
        self._name = name

    def commit(self, offsets: Offsets, mark: Mark) -> Outcome:
        """Write what of `offsets` may be written.

        Raises:
            Py4JJavaError: as Kafka's client says it.
        """
        ends = {(topic, number): end for topic, each in offsets.items() for number, end in each.items()}
        outcome = judge(self._metadata(ends), mark)
        kept = outcome.kept_topics
        wanted = {place: end for place, end in ends.items() if place[0] not in kept}
        if outcome.is_fenced or not wanted:
            return outcome
        try:
            self._write(wanted, mark)
        except Py4JJavaError as error:
            if _HAS_MEMBERS not in describe(error).partition("\n")[0]:
                raise
            return Outcome(has_members=True)
        return outcome

    def _metadata(self, places: Iterable[Place]) -> dict[Place, str]:
        """What stands beside the offsets that are there."""
        jvm, admin = self._client.jvm, self._client.admin
        asked = jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec()
        asked.topicPartitions(self._topics.partitions(places))
        found = admin.listConsumerGroupOffsets(jvm.java.util.Collections.singletonMap(self._name, asked))
        known = self._client.answer(found.partitionsToOffsetAndMetadata(self._name))
        return self._topics.metadata(known)

    def _write(self, ends: Mapping[Place, int], mark: Mark) -> None:
        left = iter(ends.items())
        while part := dict(islice(left, MOST_WRITTEN)):
            wanted = self._topics.commits(part, mark.text)
            self._client.answer(self._client.admin.alterConsumerGroupOffsets(self._name, wanted).all())
