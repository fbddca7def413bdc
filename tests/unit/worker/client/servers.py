"""Real HTTP servers on loopback that answer what a test tells them to."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


CLOSING = web.AppKey("closing", asyncio.Event)


def says(status: int, **body: Any) -> Handler:
    """Always this answer."""

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "NONE"} | body, status=status)

    return handler


def says_text(status: int, text: str) -> Handler:
    """Always this answer, which is not a manager's."""

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="text/html")

    return handler


def leads_to(url: str, status: int) -> Handler:
    """Always a redirect."""

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": url})

    return handler


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Closes the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def never_answers(request: web.Request) -> web.StreamResponse:
    """Keeps whoever asks waiting, as long as the server is there."""
    await request.app[CLOSING].wait()
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    """Promises a body and closes the connection in the middle of it."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"error": "NO')
    assert request.transport is not None
    request.transport.abort()
    return response


@dataclass
class Server:
    """One manager: what it was asked, and what it answers by path."""

    url: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    answers: dict[str, Handler] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer as told."""
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.path_qs, body))
        return await self.answers[request.path](request)

    def coordinates(self, other: Server | None = None) -> None:
        """Say that the coordinator is `other`, or itself."""
        url = (other or self).url
        self.answers["/v1/coordinator"] = says(200, group="g", coordinator={"id": "m", "url": url})

    def group(self, operation: str, handler: Handler) -> None:
        """Answer requests of members."""
        self.answers[f"/v1/groups/g/{operation}"] = handler

    def bodies(self, operation: str) -> list[Any]:
        """What members asked."""
        return [body for path, body in self.asked if path == f"/v1/groups/g/{operation}"]


class Cluster:
    """Servers that a test starts and stops."""

    def __init__(self) -> None:
        self._servers: list[Server] = []
        self._runners: dict[str, web.AppRunner] = {}

    async def start(self) -> Server:
        """A server on a free port."""
        server = Server()
        self._servers.append(server)
        app = web.Application()
        app[CLOSING] = asyncio.Event()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._runners[server.url] = runner
        return server

    async def stop(self, server: Server) -> None:
        """Take a server down."""
        runner = self._runners.pop(server.url)
        runner.app[CLOSING].set()
        await runner.cleanup()

    async def close(self) -> None:
        """Take all down."""
        for server in self._servers:
            if server.url in self._runners:
                await self.stop(server)


@contextmanager
def nobody() -> Iterator[str]:
    """The URL of nobody: the port is taken, so that nobody comes, and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
