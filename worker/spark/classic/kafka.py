"""What a broker says of the topics of a source, asked by Kafka's client in the worker's own JVM.

It is the one that Spark's connector brought, so the source's own settings are the right ones for it, TLS,
SASL and plugged-in classes included. A question is one request to each broker for the first offsets and one
for the last; the times of unread rows are a batch of rows for each partition that is behind, which is why
they are asked for seldom and of few.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from worker.lag.measure import PartitionState
from worker.lag.offset_log import reader_of
from worker.query_engine import QueryError
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from worker.lag.offset_log import Offsets

TIMEOUT_MS: Final = 10_000
"""How long a broker may take to answer, connection included."""
GRACE_MS: Final = 5000
"""How much longer its answer is waited for: what the client says then tells what was not answered."""
POLL_MS: Final = 1000
"""How long unread rows are waited for, of those partitions that have not shown one yet."""
MOST_CLIENTS: Final = 16
"""Clients that are kept for the next question; each is a thread and a connection to each broker."""
MOST_TIMES: Final = 50
"""Partitions that are read from for the time of their first unread row, those that are furthest behind."""
_PREFIX: Final = "kafka."
_OURS: Final = "sparkherd token "


class KafkaBrokers:
    """Asks brokers, from threads that may wait."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        self._lock = threading.Lock()
        self._admins: dict[tuple[tuple[str, str], ...], Any] = {}
        self.requests = 0

    def states(self, options: Mapping[str, Any], committed: Offsets) -> dict[str, dict[int, PartitionState]]:
        """The partitions of the topics that a source with these options reads.

        Raises:
            QueryError: no broker answers in time, or lets nobody in; in one line.
        """
        config = client_settings(options)
        try:
            admin = self._admin(config)
            partitions = self._partitions(admin, options)
            begins = self._offsets(admin, partitions, "earliest", config)
            ends = self._offsets(admin, partitions, "latest", config)
            times = self._times(config, _unread(committed, begins, ends))
        except Py4JJavaError as error:
            raise QueryError(describe(error)) from None
        except (Py4JError, TypeError) as error:  # of a class that is not there Py4J makes a package
            raise QueryError(f"Kafka's client is not there: {error}") from None
        states: dict[str, dict[int, PartitionState]] = {}
        for place in partitions:
            topic, number = place
            states.setdefault(topic, {})[number] = PartitionState(
                begins[place], ends[place], times.get(place)
            )
        return states

    def commit(self, options: Mapping[str, Any], group: str, offsets: Offsets, token: int) -> bool:
        """By the offsets' metadata, which says whose they are."""
        jvm = self._jvm
        try:
            admin = self._admin(client_settings(options))
            known = self._answer(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
            if any(each is not None and token_of(str(each.metadata())) > token for each in known.values()):
                return False
            wanted = jvm.java.util.HashMap()
            for topic, partitions in offsets.items():
                for number, offset in partitions.items():
                    place = jvm.org.apache.kafka.common.TopicPartition(topic, number)
                    told = jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset, metadata_of(token))
                    wanted.put(place, told)
            self._answer(admin.alterConsumerGroupOffsets(group, wanted).all())
        except Py4JJavaError as error:
            raise QueryError(describe(error)) from None
        except (Py4JError, OSError) as error:  # the JVM is going: whoever writes groups is not to go with it
            raise QueryError(f"the JVM does not answer: {error}") from None
        return True

    def close(self) -> None:
        """Let go of all clients; what they are at ends with them."""
        for admin in self._admins.values():
            admin.close(self._jvm.java.time.Duration.ofMillis(0))
        self._admins.clear()

    def _admin(self, config: Mapping[str, str]) -> Any:
        """One for each way to reach a cluster; the oldest goes when there are too many."""
        key = tuple(sorted(config.items()))
        with self._lock:
            if key not in self._admins:
                self._close_oldest()
                make = self._jvm.org.apache.kafka.clients.admin.Admin.create
                self._admins[key] = make(self._java_map(config))
            return self._admins[key]

    def _close_oldest(self) -> None:
        while len(self._admins) >= MOST_CLIENTS:
            self._admins.pop(next(iter(self._admins))).close(self._jvm.java.time.Duration.ofMillis(0))

    def _partitions(self, admin: Any, options: Mapping[str, Any]) -> list[tuple[str, int]]:
        reads = reader_of(options)
        names = [str(name) for name in self._answer(admin.listTopics().names()) if reads(str(name))]
        described = self._answer(admin.describeTopics(self._java_list(names)).allTopicNames())
        return [(name, number) for name in names for number in range(len(described[name].partitions()))]

    def _offsets(
        self, admin: Any, partitions: Iterable[tuple[str, int]], end: str, config: Mapping[str, str]
    ) -> dict[tuple[str, int], int]:
        jvm = self._jvm
        spec = getattr(jvm.org.apache.kafka.clients.admin.OffsetSpec, end)()
        places = {place: jvm.org.apache.kafka.common.TopicPartition(*place) for place in partitions}
        wanted = jvm.java.util.HashMap()
        for place in places.values():
            wanted.put(place, spec)
        level = getattr(jvm.org.apache.kafka.common.IsolationLevel, isolation(config))
        asked = jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._answer(admin.listOffsets(wanted, asked).all())
        return {place: int(found[java].offset()) for place, java in places.items()}

    def _times(
        self, config: Mapping[str, str], positions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """When the first unread row of each was written, as far as it can be read in time."""
        if not positions:
            return {}
        jvm = self._jvm
        bytes_of = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        own = {"key.deserializer": bytes_of, "value.deserializer": bytes_of, "enable.auto.commit": "false"}
        small = {
            "max.partition.fetch.bytes": "1",
            "max.poll.records": str(MOST_TIMES),
            "auto.offset.reset": "none",
        }
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            self._java_map({**config, **own, **small})
        )
        try:
            return self._first_rows(consumer, positions)
        finally:
            consumer.close(jvm.java.time.Duration.ofMillis(0))

    def _first_rows(
        self, consumer: Any, positions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        jvm = self._jvm
        places = {place: jvm.org.apache.kafka.common.TopicPartition(*place) for place in positions}
        consumer.assign(self._java_list(places.values()))
        for place, java in places.items():
            consumer.seek(java, positions[place])
        times: dict[tuple[str, int], int] = {}
        for _ in range(len(positions) + 1):
            self.requests += 1
            found = consumer.poll(jvm.java.time.Duration.ofMillis(POLL_MS))
            rows = found.iterator()
            while rows.hasNext():
                row = rows.next()
                times.setdefault((str(row.topic()), int(row.partition())), int(row.timestamp()))
            if len(times) == len(places) or found.isEmpty():
                return times
            consumer.pause(self._java_list(java for place, java in places.items() if place in times))
        return times

    def _answer(self, future: Any) -> Any:
        self.requests += 1
        return future.get(TIMEOUT_MS + GRACE_MS, self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS)

    def _java_map(self, items: Mapping[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    def _java_list(self, items: Iterable[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for each in items:
            made.add(each)
        return made


def client_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """What of a source's options is for Kafka's client, under the names that it knows."""
    given = {
        name[len(_PREFIX) :]: str(value)
        for name, value in options.items()
        if name.lower().startswith(_PREFIX)
    }
    limits = {"request.timeout.ms": str(TIMEOUT_MS), "default.api.timeout.ms": str(TIMEOUT_MS)}
    return {**given, **limits, "client.id": "sparkherd-lag"}


def metadata_of(token: int) -> str:
    """What stands beside an offset that we have written: under which token."""
    return f"{_OURS}{token}"


def token_of(metadata: str) -> int:
    """The token in an offset's metadata; 0 if it is not one of ours."""
    number = metadata.removeprefix(_OURS)
    return int(number) if metadata.startswith(_OURS) and number.isascii() and number.isdecimal() else 0


def isolation(config: Mapping[str, str]) -> str:
    """The level at which the source reads: rows of open transactions are not there for `READ_COMMITTED`."""
    return config.get("isolation.level", "read_uncommitted").upper()


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
