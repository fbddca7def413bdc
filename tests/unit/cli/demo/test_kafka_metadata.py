"""What a broker is asked for, and what is read from its answer."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from cli.demo.kafka_metadata import live_brokers

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 10.0
REQUEST = bytes.fromhex("0000000e 0003 0001 00000000 ffff 00000000")


def a_broker(number: int, host: bytes, rack: bytes | None) -> bytes:
    """One of the brokers in an answer."""
    rest = struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack
    return struct.pack(">ih", number, len(host)) + host + struct.pack(">i", 9092) + rest


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Who listens at a port, wants the request, and sends that."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_one() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST
                for at in range(0, len(answer), 7):
                    connection.sendall(answer[at : at + 7])

        thread = threading.Thread(target=answer_one)
        thread.start()
        yield server.getsockname()[1]
        thread.join(TIMEOUT_S)


def test_ids_of_all_brokers() -> None:
    """Hosts and racks have any length; what follows the brokers is nobody's concern."""
    brokers = a_broker(1, b"127.0.0.1", None) + a_broker(7, b"kafka", b"left") + a_broker(3, b"", b"")
    body = struct.pack(">ii", 0, 3) + brokers + b"controller and topics"
    with answering(struct.pack(">i", len(body)) + body) as port:
        assert live_brokers("127.0.0.1", port, TIMEOUT_S) == {1, 3, 7}


@pytest.mark.parametrize("answer", [b"", b"\0\0", struct.pack(">i", 100) + b"half"])
def test_one_that_hangs_up_does_not_answer(answer: bytes) -> None:
    """Before its answer or within it: an `OSError`, as when nobody listens."""
    with answering(answer) as port, pytest.raises(OSError, match="closed"):
        live_brokers("127.0.0.1", port, TIMEOUT_S)
