"""The demo's topic of flights: a Kafka broker of its own, and what produces into it while the herd runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.demo.data import flights as all_flights
from cli.demo.die_with_parent import LAUNCHER
from cli.demo.kafka_broker import KafkaBroker
from cli.demo.kafka_feed import Feed, producer_words
from cli.demo.kafka_tasks import PARTITIONS, TOPIC, record
from protocol.errors import StartupError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

FLIGHTS_A_SECOND: Final = 7500
"""A pace that two cores keep up with."""

LEAST_S: Final = 10.0
LAG_INTERVAL_MS: Final = 2000
HOW_TO_GET: Final = "`make jars`, in a checkout of sparkherd, copies both into jars"


class KafkaJars:
    """The folder that `make jars` makes.

    Raises:
        StartupError: it has no broker, or not what Spark needs to read from one.
    """

    def __init__(self, folder: str) -> None:
        self.broker = Path(folder).resolve() / "kafka"
        self.spark = Path(folder).resolve() / "spark" / "kafka"
        for what, place, jar in (
            ("Kafka broker", self.broker, "kafka_2*.jar"),
            ("Kafka connector of Spark", self.spark, "spark-sql-kafka-*.jar"),
        ):
            if not any(place.glob(jar)):
                raise StartupError(f"--kafka {folder}: no {what} in {place}; {HOW_TO_GET}")

    @property
    def worker_flags(self) -> tuple[str, ...]:
        """What a worker needs to read the topic, and to be quick to tell how far it is behind."""
        return ("--jars", str(self.spark), "--lag-interval-ms", str(LAG_INTERVAL_MS))


class FlightTopic:
    """Starts, kills and feeds the broker; as a context manager it leaves no process behind.

    Args:
        jars: of the broker and its tools.
        workdir: of the demo.
        flights: how many of them are produced.
        die_with_parent: whether the processes end when this one is killed outright.
    """

    def __init__(self, jars: KafkaJars, workdir: Path, flights: int, *, die_with_parent: bool) -> None:
        launcher = LAUNCHER if die_with_parent else ()
        self.flights = flights
        self.broker = KafkaBroker(jars.broker, workdir / "broker", launcher=launcher)
        self._feed = Feed(
            [*launcher, *self.broker.tool_command("kafka-console-producer", *producer_words(TOPIC))],
            map(record, all_flights(flights)),
            count=flights,
            seconds=max(LEAST_S, flights / FLIGHTS_A_SECOND),
            log=workdir / "producer.log",
        )
        self._is_to_run = False
        self._released = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._feed:
            pass
        if not self._released:
            self.broker.stop()

    def open(self) -> None:
        """Start the broker, and create the empty topic.

        Raises:
            BrokerError: one of both failed.
        """
        self.broker.start()
        self._is_to_run = True
        self.broker.tool("kafka-topics", "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS))

    def begin(self) -> None:
        """Let the first half of the flights arrive."""
        self._feed.start()

    def go_on(self) -> None:
        """Let the second half arrive."""
        self._feed.go_on()

    @property
    def share_produced(self) -> float:
        """The share of the flights that the producer was handed, 0 to 1."""
        return self._feed.share

    def kill_broker(self) -> None:
        """With SIGKILL."""
        self._is_to_run = False
        self.broker.kill()

    def launch_broker(self) -> None:
        """Start it again, without waiting for it."""
        self.broker.launch()
        self._is_to_run = True

    def trouble(self) -> str | None:
        """Why flights may not arrive; None if there is no such reason."""
        if self._is_to_run and not self.broker.alive:
            return f"the broker ended: {self.broker.last_words()}"
        return self._feed.trouble()

    def release(self) -> None:
        """Leave the broker running."""
        self._released = True
