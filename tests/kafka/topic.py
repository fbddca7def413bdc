"""One topic of a broker: what is put into it, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.kafka.broker import Broker

TIMEOUT_S = 30.0
MOST_WAITING = 2_000_000
"""Rows that a producer takes before a broker has them; with librdkafka's 100,000 it refuses the next ones."""
NOW = 0
"""Of a row's time: whenever it is sent."""


@dataclass(frozen=True)
class Topic:
    """Its name, and where it is."""

    broker: Broker
    name: str

    def source(self, **more: Any) -> dict[str, Any]:
        """A definition's source that reads all of it; `options` go over its own, the rest beside them."""
        options = {
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "subscribe": self.name,
            "startingOffsets": "earliest",
            **more.pop("options", {}),
        }
        return {"format": "kafka", "options": options, **more}

    def produce(
        self,
        values: Iterable[bytes | None],
        *,
        partition: int | None = None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        times: Iterable[int] = (),
    ) -> None:
        """Put values there, spread over the partitions unless one is named; returns when they are there.

        The time of each is now, or the one of `times` in its place, in ms since 1970.
        """
        once = {"enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        once["queue.buffering.max.messages"] = MOST_WAITING
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, **once})
        failed: list[Any] = []
        where = {} if partition is None else {"partition": partition}
        for value, at in zip(values, times or repeat(NOW), strict=False):
            producer.produce(
                self.name, value, key=key, headers=list(headers), timestamp=at,
                on_delivery=lambda error, _: failed.append(error) if error else None, **where,
            )  # fmt: skip
            producer.poll(0)
        left = producer.flush(TIMEOUT_S)
        if failed or left:
            raise KafkaException(f"{left} not sent, {failed[:1]}")

    def widen(self, partitions: int) -> None:
        """Give it more, so that it has so many."""
        admin = self.broker.admin()  # to be kept until the answer is there
        for made in admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            made.result(TIMEOUT_S)

    def delete_before(self, offsets: Mapping[int, int]) -> None:
        """Delete all that lies before these offsets, by partition, as retention does."""
        places = [TopicPartition(self.name, number, offset) for number, offset in offsets.items()]
        admin = self.broker.admin()
        for done in admin.delete_records(places).values():
            done.result(TIMEOUT_S)

    def ends(self) -> dict[int, tuple[int, int]]:
        """The earliest and the next offset of each partition."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "ends", "log_level": 0})
        try:
            found = consumer.list_topics(self.name, TIMEOUT_S).topics[self.name].partitions
            return {
                number: consumer.get_watermark_offsets(TopicPartition(self.name, number), TIMEOUT_S)
                for number in found
            }
        finally:
            consumer.close()
