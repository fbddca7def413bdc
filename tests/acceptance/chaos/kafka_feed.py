"""Rows as records in a topic for each flow, at a broker that is struck like everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.acceptance.chaos.feed import Feed
from tests.kafka.broker import JARS, Broker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from confluent_kafka import KafkaError, Message

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.rows import Rows
    from tests.kafka.topic import Topic

PARTITIONS = 2
"""Of a topic, at the beginning."""
ANSWER_S = 60.0
PATIENCE_MS = 400_000
"""How long a row may be on its way: the broker is away for a while, on a machine that is busy."""
ONCE = {
    "enable.idempotence": True,
    "acks": "all",
    "delivery.timeout.ms": PATIENCE_MS,
    "reconnect.backoff.max.ms": 500,
    "linger.ms": 5,
    "log_level": 0,
}
"""A producer that sends again what was not acknowledged, and of which the broker keeps one each."""


class KafkaFeed(Feed):
    """Produces whether the broker is there or not; what cannot be sent now is sent when it is back."""

    worker_flags = ("--jars", str(JARS.parent / "spark" / "kafka"))

    def __init__(self, folder: Path, chosen: Iterable[Flow], written: Rows) -> None:
        super().__init__(chosen, written)
        self.broker = Broker(folder)
        self._producer = Producer({**ONCE, "bootstrap.servers": self.broker.bootstrap})
        self._partitions = {flow.name: PARTITIONS for flow in self.flows}
        self._topics: dict[str, Topic] = {}
        self._refused: list[KafkaError] = []

    def open(self) -> None:
        """A topic a flow, of its name."""
        self.broker.start()
        for flow in self.flows:
            self._topics[flow.name] = self.broker.topic(flow.name, PARTITIONS)
        self._await_metadata()

    def close(self) -> None:
        """What was not sent is left."""
        self._producer.purge()
        self.broker.kill()

    def source(self, flow: Flow) -> dict[str, Any]:
        """As many rows a batch as the other feeds give."""
        options = {"maxOffsetsPerTrigger": flow.table.rows_a_batch}
        return self._topics[flow.name].source(options=options, value=self._written.payload(flow))

    def forget(self, flow: Flow) -> None:
        """All is kept but the first rows, if retention has run: it ends when it has deleted all."""
        deleted = sum(begin for begin, _ in self._topics[flow.name].ends().values())
        flow.first = max(flow.first, deleted)

    def check(self) -> None:
        """No row was refused for good."""
        self._producer.poll(0)
        assert not self._refused, self._refused[0].str()

    def summary(self) -> str:
        """By what the broker has, and what it had."""
        ends = [each for topic in self._topics.values() for each in topic.ends().values()]
        records, deleted = sum(end for _, end in ends), sum(begin for begin, _ in ends)
        return f"kafka: {len(ends)} partitions, {records:,} records, {deleted:,} of them deleted since"

    def topic(self, flow: Flow) -> Topic:
        """The flow's."""
        return self._topics[flow.name]

    def add_partitions(self) -> None:
        """One more for each topic, which a row in so many goes into from now on."""
        for name, topic in self._topics.items():
            self._partitions[name] += 1
            topic.widen(self._partitions[name])
        self._await_metadata()

    def _await_metadata(self) -> None:
        """Until the producer knows all partitions; it refuses rows for others."""
        for name, number in self._partitions.items():
            while len(self._producer.list_topics(name, ANSWER_S).topics[name].partitions) < number:
                pass

    def _put(self, flow: Flow, lines: Mapping[int, bytes]) -> None:
        for number, line in lines.items():
            partition = number % self._partitions[flow.name]
            self._producer.produce(flow.name, line, partition=partition, on_delivery=self._note)
        self._producer.poll(0)

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._refused.append(error)
