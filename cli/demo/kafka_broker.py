"""A real Kafka broker (KRaft) as a process on this machine, alone or one of a cluster, and Kafka's own tools.

Its jars lie apart from Spark's, which has another client of Kafka's; `make jars` copies both.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cli.demo.free_ports import free_ports
from cli.demo.kafka_metadata import live_brokers
from worker.spark.classic.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HOST: Final = "127.0.0.1"
START_S: Final = 180.0
"""Machines that are busy with a dozen JVMs have been seen to take 40 s."""

STOP_S: Final = 30.0
TOOL_S: Final = 180.0
ANSWER_S: Final = 2.0
POLL_S: Final = 0.05

CLUSTER: Final = base64.urlsafe_b64encode(b"sparkherd broker").decode().rstrip("=")
"""Sixteen bytes as Kafka writes them; an id must not begin with a dash."""

TOOLS: Final = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
}
"""The scripts of Kafka's bin folder, by the class that each runs."""

SMALL_JVM: Final = ("-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""


class BrokerError(Exception):
    """A broker or one of Kafka's tools did not do what it was to do; the text has its last words."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a cluster, broker and controller at once: its id and its ports on loopback."""

    number: int
    port: int
    controller_port: int

    @property
    def controller(self) -> str:
        """Where its controller listens."""
        return f"{HOST}:{self.controller_port}"


def new_nodes(count: int) -> tuple[Node, ...]:
    """So many nodes of one cluster, on ports that are free now."""
    ports = free_ports(HOST, 2 * count)
    return tuple(Node(n + 1, ports[2 * n], ports[2 * n + 1]) for n in range(count))


class KafkaTools:
    """Kafka's programs from a folder of jars, run by the Java that Spark takes.

    Args:
        jars: Kafka's, those of its tools among them.
        folder: an existing one, where their log configuration is written to.
        java_options: of the JVMs that they run in; small ones that start soon, if none are given.
    """

    def __init__(self, jars: Path, folder: Path, java_options: Sequence[str] = SMALL_JVM) -> None:
        self._jars = jars
        self._java_options = java_options
        self._log4j = folder / "log4j2.properties"
        self._log4j.write_text(_LOG4J, encoding="utf-8")

    def command(self, main: str, *words: str) -> list[str]:
        """The command line of a class with a main method."""
        log4j = f"-Dlog4j2.configurationFile={self._log4j}"
        return [find_java() or "java", *self._java_options, "-cp", f"{self._jars}/*", log4j, main, *words]

    def run(self, main: str, *words: str, said: bytes = b"") -> str:
        """What a program prints, given `said` on its standard input.

        Raises:
            BrokerError: it failed, or did not end in time.
        """
        command = self.command(main, *words)
        try:
            done = subprocess.run(  # noqa: S603 - our own command line
                command, input=said, capture_output=True, timeout=TOOL_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise BrokerError(f"{main} has not ended within {TOOL_S:.0f} s") from None
        except OSError as error:
            raise BrokerError(f"Kafka needs Java, and {command[0]} does not run: {error.strerror}") from None
        if done.returncode != 0:
            said_last = (done.stdout + done.stderr).decode(errors="replace")
            raise BrokerError(f"{main} ended with exit code {done.returncode}: {said_last}")
        return done.stdout.decode()


class KafkaBroker:
    """One broker that can be stopped, killed, frozen, and started again where it was.

    Args:
        jars: the folder of Kafka's jars.
        folder: for its data, settings and log; made when it is not there.
        node: this one of `nodes`; without, it is alone.
        nodes: all of the cluster, each of them a controller of its quorum.
        settings: added to those that brokers on loopback need.
        launcher: a command to put before its own, which becomes what follows it.
        java_options: of its JVM.
    """

    def __init__(
        self,
        jars: Path,
        folder: Path,
        *,
        node: Node | None = None,
        nodes: Sequence[Node] = (),
        settings: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
        java_options: Sequence[str] = SMALL_JVM,
    ) -> None:
        self.nodes = tuple(nodes) or ((node,) if node else new_nodes(1))
        self.node = node or self.nodes[0]
        self.port = self.node.port
        self.bootstrap = ",".join(f"{HOST}:{node.port}" for node in self.nodes)
        self.folder = folder
        self.log = folder / "broker.log"
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = {**_settings(self.node, self.nodes, folder / "data"), **(settings or {})}
        self._properties = folder / "server.properties"
        self._tools = KafkaTools(jars, folder, java_options)
        self._launcher = launcher
        self._process: subprocess.Popen[bytes] | None = None
        self._log_before = 0

    @property
    def replicas(self) -> int:
        """How often a topic of its cluster can be kept, three times at most."""
        return _replicas(self.nodes)

    def start(self) -> None:
        """Start it, again with what it had, and wait until it takes requests.

        Raises:
            BrokerError: it ended, or does not take any in time.
        """
        self.launch()
        self.wait_started()

    def launch(self) -> None:
        """Start its process, on formatted storage; brokers of a cluster wait for each other from then on."""
        self._format()
        self._log_before = self.log.stat().st_size if self.log.exists() else 0
        command = [*self._launcher, *self._tools.command("kafka.Kafka", str(self._properties))]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for who started it, who then stops it in order
            )

    def wait_started(self) -> None:
        """Wait until the launched broker takes requests; raises as `start` does."""
        deadline = time.monotonic() + START_S
        while not self.takes_requests():
            if not self.alive:
                raise BrokerError(f"the broker ended: {self.last_words()}")
            if time.monotonic() > deadline:
                raise BrokerError(f"the broker has not started in {START_S:.0f} s: {self.last_words()}")
            time.sleep(POLL_S)

    def takes_requests(self) -> bool:
        """Whether it does, as a member of its cluster."""
        try:
            return self.node.number in live_brokers(HOST, self.port, ANSWER_S)
        except OSError:
            return False

    @property
    def alive(self) -> bool:
        """Whether its process is there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process that was launched last."""
        assert self._process is not None, "the broker was never launched"  # noqa: S101 - a mistake of the caller's
        return self._process.pid

    def last_words(self) -> str:
        """The end of what it has logged since it was launched."""
        lines = [line for line in self._said().splitlines() if line.strip()]
        return f"{lines[-1] if lines else 'it said nothing'} (see {self.log})"

    def kill(self) -> None:
        """As a machine that loses its power, if it is running."""
        if self.alive:
            self._signal(signal.SIGKILL)
            self._wait()

    def stop(self) -> None:
        """In order, if it is running."""
        if self.alive:
            self._signal(signal.SIGTERM)
            self._wait()

    def freeze(self) -> None:
        """It holds its connections, and says nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on as if no time had passed."""
        self._signal(signal.SIGCONT)

    def tool(self, name: str, *words: str, said: bytes = b"") -> str:
        """What one of Kafka's own tools prints, asked about this cluster, given `said` on its standard input.

        Args:
            name: as in Kafka's bin folder, one of `TOOLS`.
            words: its arguments but for the brokers' addresses.
            said: what it reads from its standard input.

        Raises:
            BrokerError: the tool failed.
        """
        return self._tools.run(TOOLS[name], *words, "--bootstrap-server", self.bootstrap, said=said)

    def tool_command(self, name: str, *words: str) -> list[str]:
        """The command line of such a tool, for one that is to run for longer."""
        return self._tools.command(TOOLS[name], *words, "--bootstrap-server", self.bootstrap)

    def _format(self) -> None:
        """Give it settings and empty storage, once."""
        if (self.folder / "data" / "meta.properties").exists():
            return
        lines = "".join(f"{key}={value}\n" for key, value in self._settings.items())
        self._properties.write_text(lines, encoding="utf-8")
        controllers = ",".join(f"{node.number}@{node.controller}:{_directory(node)}" for node in self.nodes)
        words = ("--cluster-id", CLUSTER, "--initial-controllers", controllers)
        self._tools.run("kafka.tools.StorageTool", "format", *words, "--config", str(self._properties))

    def _said(self) -> str:
        """What it has logged since it was launched: the log of a broker that was started again goes on."""
        with self.log.open("rb") as log:
            log.seek(self._log_before)
            return log.read().decode(errors="replace")

    def _signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def _wait(self) -> None:
        assert self._process is not None, "the broker was never launched"  # noqa: S101 - a mistake of the caller's
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _directory(node: Node) -> str:
    """The id of a node's storage, which all of its cluster must know when they are formatted."""
    return base64.urlsafe_b64encode(f"sparkherd {node.number:06}".encode()).decode().rstrip("=")


def _replicas(nodes: Sequence[Node]) -> int:
    return min(3, len(nodes))


def _settings(node: Node, nodes: Sequence[Node], data: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(node.controller for node in nodes),
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{node.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        # One that was killed and is started again is let in when its former session has ended.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "4000",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        **_replication(_replicas(nodes)),
    }


def _replication(replicas: int) -> dict[str, str]:
    """All but one of the replicas must have what is acknowledged; of a broker that is alone, itself."""
    in_sync = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": in_sync,
    }
