"""One request to a Kafka broker, as bytes: which brokers of its cluster are alive (Metadata v1)."""

from __future__ import annotations

import socket
import struct
from typing import Final

METADATA: Final = 3
VERSION: Final = 1
NO_TOPICS: Final = struct.pack(">i", 0)
HEADER: Final = struct.pack(">hhih", METADATA, VERSION, 0, -1)
"""Request, version, correlation id, and no client id."""


def live_brokers(host: str, port: int, timeout_s: float) -> frozenset[int]:
    """The ids of the brokers that the one at `port` knows to be alive, itself among them once it is one.

    A broker knows of itself when its controller has taken it into the cluster: it then takes all requests.

    Raises:
        OSError: it does not answer within `timeout_s` seconds.
    """
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.settimeout(timeout_s)
        request = HEADER + NO_TOPICS
        connection.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _exactly(connection, 4))
        return frozenset(_broker_ids(_exactly(connection, length)))


def _exactly(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        more = connection.recv(count - len(read))
        if not more:
            raise ConnectionResetError("the broker has closed the connection")
        read += more
    return read


def _broker_ids(answer: bytes) -> list[int]:
    """The correlation id and the count of brokers, then of each: id, host, port and rack."""
    _, count = struct.unpack_from(">ii", answer)
    ids, at = [], 8
    for _ in range(count):
        number, host = struct.unpack_from(">ih", answer, at)
        (rack,) = struct.unpack_from(">h", answer, at + 10 + host)
        ids.append(number)
        at += 12 + host + max(rack, 0)
    return ids
