"""One consumer group of Kafka's: what is committed in it, and what is to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from worker.lag.group_offsets import Outcome, judge
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.lag.group_offsets import Mark, Place
    from worker.lag.offset_log import Offsets
    from worker.spark.classic.kafka_clients import KafkaClient

_HAS_MEMBERS: Final = "UnknownMemberIdException: "
"""Brokers take offsets from outside only for a group without members."""


class ConsumerGroup:
    """Looked at and written through one client, which counts the questions."""

    def __init__(self, client: KafkaClient, name: str) -> None:
        self._client = client
        self._jvm = client.jvm
        self._name = name

    def commit(self, offsets: Offsets, mark: Mark) -> Outcome:
        """Write what of `offsets` may be written.

        Raises:
            Py4JJavaError: as Kafka's client says it.
        """
        places = {
            (topic, number): self._jvm.org.apache.kafka.common.TopicPartition(topic, number)
            for topic, partitions in offsets.items()
            for number in partitions
        }
        outcome = judge(self._metadata(places), mark)
        kept = {each.topic for each in outcome.kept}
        wanted = {place: java for place, java in places.items() if place[0] not in kept}
        if outcome.is_fenced or not wanted:
            return outcome
        try:
            self._write([(java, offsets[topic][number]) for (topic, number), java in wanted.items()], mark)
        except Py4JJavaError as error:
            if _HAS_MEMBERS not in describe(error).partition("\n")[0]:
                raise
            return Outcome(has_members=True)
        return outcome

    def _metadata(self, places: Mapping[Place, Any]) -> dict[Place, str]:
        """What stands beside the offsets that are there."""
        jvm, asked = self._jvm, self._jvm.java.util.ArrayList()
        for java in places.values():
            asked.add(java)
        spec = jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec().topicPartitions(asked)
        admin = self._client.admin
        found = admin.listConsumerGroupOffsets(jvm.java.util.Collections.singletonMap(self._name, spec))
        known = self._client.answer(found.partitionsToOffsetAndMetadata(self._name))
        there = {place: known.get(java) for place, java in places.items()}
        return {place: str(each.metadata()) for place, each in there.items() if each is not None}

    def _write(self, offsets: Iterable[tuple[Any, int]], mark: Mark) -> None:
        jvm, wanted = self._jvm, self._jvm.java.util.HashMap()
        for java, offset in offsets:
            wanted.put(java, jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset, mark.text))
        self._client.answer(self._client.admin.alterConsumerGroupOffsets(self._name, wanted).all())
