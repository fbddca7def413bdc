"""One topic of a broker: what is put into it, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.kafka.broker import Broker

TIMEOUT_S = 30.0


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
    ) -> None:
        """Put values there, spread over the partitions unless one is named; returns when they are there."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5, "log_level": 0})
        failed: list[Any] = []
        where = {} if partition is None else {"partition": partition}
        for value in values:
            producer.produce(
                self.name, value, key=key, headers=list(headers),
                on_delivery=lambda error, _: failed.append(error) if error else None, **where,
            )  # fmt: skip
            producer.poll(0)
        left = producer.flush(TIMEOUT_S)
        if failed or left:
            raise KafkaException(f"{left} not sent, {failed[:1]}")

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
