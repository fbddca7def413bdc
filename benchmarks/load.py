"""A load generator that does next to nothing: each connection sends one prepared request after another."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, cast

import uvloop

if TYPE_CHECKING:
    import ssl

END_OF_HEAD = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """Sends its request, waits for the whole answer, sends it again; counts the answers that are 200."""

    def __init__(self, request: bytes) -> None:
        self.answers = self.refusals = 0
        self._request = request
        self._seen = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Go on once the answer is complete."""
        self._seen += data
        head, separator, body = self._seen.partition(END_OF_HEAD)
        if not separator or len(body) < _length(head):
            return
        self._seen = b""
        self.answers += head.startswith(b"HTTP/1.1 200")
        self.refusals += not head.startswith(b"HTTP/1.1 200")
        if self._transport:
            self._transport.write(self._request)

    def close(self) -> None:
        """Enough."""
        if self._transport:
            self._transport.abort()


def request(host: str, path: str, body: bytes, token: str = "") -> bytes:
    """A POST as bytes."""
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}{shown}Content-Length: {len(body)}\r\n\r\n".encode() + body


def answers_a_second(
    address: tuple[str, int], requests: list[bytes], seconds: float, tls: ssl.SSLContext | None = None
) -> float:
    """How many requests a second are answered with 200 over as many connections as there are requests."""
    return uvloop.run(_drive(address, requests, seconds, tls))


async def _drive(
    address: tuple[str, int], requests: list[bytes], seconds: float, tls: ssl.SSLContext | None
) -> float:
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(partial(Connection, each), *address, ssl=tls) for each in requests]
    connections = [connection for _, connection in made]
    before, start = sum(c.answers for c in connections), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(c.answers for c in connections) - before) / (time.perf_counter() - start)
    for connection in connections:
        connection.close()
    if refused := sum(c.refusals for c in connections):
        raise RuntimeError(f"{refused} requests were refused")
    return rate


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0] or b"0")
