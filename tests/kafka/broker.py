"""A real Kafka broker (KRaft, one node) as a process on this machine, and Kafka's own tools.

Its jars come from `make jars`; they lie apart from Spark's, which has another client of Kafka's.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.topic import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
JARS: Final = ROOT / "jars" / "kafka"
START_S: Final = 60.0
STOP_S: Final = 30.0
CLUSTER: Final = base64.urlsafe_b64encode(b"sparkherd tests!").decode().rstrip("=")
_JAVA: Final = ("java", "-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOG4J: Final = ROOT / "tests" / "kafka" / "log4j2.properties"
TOOLS: Final = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
}


class Broker:
    """One broker that can be killed, frozen and started again where it was."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are added to those that one node on loopback needs."""
        self.folder = folder
        self.port, controller = _free_port(), _free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.log = folder / "broker.log"
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        chosen = {**_settings(self.port, controller, folder / "data"), **(settings or {})}
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in chosen.items()))
        words = ("format", "--standalone", "--cluster-id", CLUSTER, "--config", str(self._properties))
        subprocess.run(_command("kafka.tools.StorageTool", *words), check=True, capture_output=True)

    def start(self) -> None:
        """Start it, again with what it had, and wait until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                _command("kafka.Kafka", str(self._properties)), stdout=log, stderr=log, cwd=self.folder
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            said = self.log.read_text(errors="replace")[-4000:]
            assert self._process.poll() is None, f"the broker ended\n{said}"
            assert time.monotonic() < deadline, f"the broker does not answer\n{said}"

    def _answers(self) -> bool:
        """Whether it tells its topics within two seconds."""
        try:
            self.admin().list_topics(timeout=2)
        except KafkaException:
            return False
        return True

    def admin(self) -> AdminClient:
        """Who asks it for topics and offsets, and says nothing of brokers that are not up yet."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def topic(self, name: str, partitions: int = 1, **config: str) -> Topic:
        """A new, empty topic; `config` is the topic's, with _ for a dot."""
        wanted = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=1,
            config={key.replace("_", "."): value for key, value in config.items()},
        )
        admin = self.admin()  # to be kept until the answer is there
        for made in admin.create_topics([wanted]).values():
            made.result(START_S)
        return Topic(self, name)

    def kill(self) -> None:
        """As a machine that loses its power."""
        self._signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """In order, if it is running."""
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGTERM)
            self._wait()

    def freeze(self) -> None:
        """It holds its connections, and says nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on as if no time had passed."""
        self._signal(signal.SIGCONT)

    def tool(self, name: str, *words: str, said: bytes = b"") -> str:
        """What one of Kafka's own tools prints, given `said` on its standard input."""
        command = _command(TOOLS[name], *words, "--bootstrap-server", self.bootstrap)
        done = subprocess.run(command, input=said, capture_output=True, timeout=STOP_S * 2, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def _signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _wait(self) -> None:
        assert self._process is not None
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A broker that answers, with its data in `folder`."""
    broker = Broker(folder, settings)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def _command(main: str, *words: str) -> list[str]:
    return [*_JAVA, "-cp", f"{JARS}/*", f"-Dlog4j2.configurationFile={_LOG4J}", main, *words]


def _settings(port: int, controller: int, data: Path) -> dict[str, str]:
    once = dict.fromkeys(
        (
            "offsets.topic.num.partitions",
            "offsets.topic.replication.factor",
            "transaction.state.log.num.partitions",
            "transaction.state.log.replication.factor",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
        ),
        "1",
    )
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        **once,
    }


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
