"""A load generator that does next to nothing: each connection sends one prepared request after another."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, cast

import uvloop

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

END_OF_HEAD = b"\r\n\r\n"


class LoadConnection(asyncio.Protocol):
    """Sends a request, waits for the whole answer, sends the next; counts the answers that are successes."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.answers = self.refusals = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._seen = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server has closed a connection"))

    def data_received(self, data: bytes) -> None:
        """Go on once the answer is complete."""
        self._seen += data
        head, separator, body = self._seen.partition(END_OF_HEAD)
        if not separator or len(body) < _length(head):
            return
        self._seen = b""
        self.answers += head.startswith(b"HTTP/1.1 2")
        self.refusals += not head.startswith(b"HTTP/1.1 2")
        self.go_on()

    def go_on(self) -> None:
        """Send the next request, if there is one."""
        following = next(self._requests, None)
        if following is None:
            self.done.set_result(None)
        elif self._transport:
            self._transport.write(following)

    def close(self) -> None:
        """Enough: that the connection is lost now is nobody's trouble."""
        self.done.cancel()
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
    """How many requests a second are answered with success, each on its own connection again and again."""
    return uvloop.run(_drive(address, requests, seconds, tls))


async def _drive(
    address: tuple[str, int], requests: list[bytes], seconds: float, tls: ssl.SSLContext | None
) -> float:
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(partial(LoadConnection, repeat(each)), *address, ssl=tls)
        for each in requests
    ]
    connections = [connection for _, connection in made]
    for connection in connections:
        connection.go_on()
    before, start = sum(c.answers for c in connections), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(c.answers for c in connections) - before) / (time.perf_counter() - start)
    for connection in connections:
        connection.close()
    if refused := sum(c.refusals for c in connections):
        raise RuntimeError(f"{refused} requests were refused")
    return rate


def send_all(address: tuple[str, int], requests: Iterable[bytes], connections: int) -> float:
    """Send each request once, over so many connections, until the last is answered; returns when it began."""
    return uvloop.run(_send_all(address, iter(requests), connections))


async def _send_all(address: tuple[str, int], requests: Iterator[bytes], connections: int) -> float:
    loop = asyncio.get_running_loop()
    opening = (loop.create_connection(lambda: LoadConnection(requests), *address) for _ in range(connections))
    made = [connection for _, connection in await asyncio.gather(*opening)]
    begun = time.monotonic()
    for connection in made:
        connection.go_on()
    await asyncio.gather(*(connection.done for connection in made))
    for connection in made:
        connection.close()
    if refused := sum(connection.refusals for connection in made):
        raise RuntimeError(f"{refused} requests were refused")
    return begun


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0] or b"0")
