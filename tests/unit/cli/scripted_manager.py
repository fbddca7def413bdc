"""A manager that answers what a test tells it to."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class ScriptedManager:
    """Answers by method and path, and keeps what it was asked."""

    url: str = ""
    answers: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    sends: dict[str, str] = field(default_factory=dict)
    """Headers of every answer."""
    hangs_up_on: str = ""
    """The method of requests that are heard and not answered."""
    waits_for: threading.Event | None = None
    """What has to happen before it answers."""

    def on(self, method: str, path: str, body: Any, status: int = 200) -> None:
        """Answer this request with that, whatever its query is unless `path` has one."""
        self.answers[method, path] = status, body

    def asked(self, method: str) -> list[tuple[str, Any]]:
        """The paths and bodies of all requests of a method."""
        return [(path, body) for m, path, body in self.requests if m == method]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """What goes back; text is sent as it is."""
        self.requests.append((method, path, json.loads(body) if body else None))
        not_found = 404, {"error": "NOT_FOUND", "message": f"no {path}", "retriable": False}
        known = self.answers.get((method, path.partition("?")[0]), not_found)
        status, document = self.answers.get((method, path), known)
        return status, document.encode() if isinstance(document, str) else json.dumps(document).encode()


@contextmanager
def scripted_manager() -> Iterator[ScriptedManager]:
    """Serve one on a port of its own."""
    scripted = ScriptedManager()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            scripted.headers.append(dict(self.headers))
            if scripted.hangs_up_on == self.command:
                self.close_connection = True
                return
            if scripted.waits_for is not None:
                scripted.waits_for.wait(10)
            status, document = scripted.answer(self.command, self.path, body)
            self.send_response(status)
            for name, value in scripted.sends.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(document)

        do_GET = do_PUT = do_POST = do_DELETE = respond  # noqa: N815 - http.server's spelling

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        scripted.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield scripted
        server.shutdown()
        thread.join()
