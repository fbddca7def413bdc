"""A system that takes webhooks, in this process, now and then badly."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = frozenset(20 << doublings for doublings in range(10))
"""Requests that are, by their number: each has the sender wait for a second, so they become rare."""


class Receiver:
    """What came, in order; the twentieth, fortieth, eightieth request is answered 500 though it was kept."""

    def __init__(self) -> None:
        self.got: list[tuple[int, bytes]] = []
        self.signatures: list[str] = []
        self.url = ""

    def take(self, number: int, signature: str, body: bytes) -> int:
        """Keep it; returns the status."""
        self.got.append((number, body))
        self.signatures.append(signature)
        return 500 if len(self.got) in REFUSED else 204

    def first_seen(self) -> list[int]:
        """Ids as a receiver has them that drops repeats."""
        return list(dict.fromkeys(number for number, _ in self.got))

    def event(self, number: int) -> dict[str, Any]:
        """The one event of that id; whatever came twice has to be the same."""
        (body,) = {body for n, body in self.got if n == number}
        return dict(msgspec.json.decode(body))


@contextmanager
def receiving() -> Iterator[Receiver]:
    """One on a port of its own."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signature = self.headers.get("webhook-signature", "")
            self.send_response(receiver.take(int(self.headers["webhook-id"]), signature, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook/secret-path"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
