"""The HTTP server: what goes wrong before a request reaches its handler has an error body too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import web

from manager.http.express import Express
from manager.http.replying import bug, errors_as_json, refusal
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    _Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

SHUTDOWN_S = 2.0
"""How long answers that were given at the end may take to leave."""

REASON_LENGTH = 200


class Connection(web.RequestHandler):
    """One connection; what does not parse as HTTP is answered as everything else is.

    Heartbeats have a lane of their own on it (`manager.http.express`).
    """

    __slots__ = ("_lane",)

    def __init__(self, server: web.Server, express: Express) -> None:
        super().__init__(server, loop=asyncio.get_running_loop())
        self._lane = express.lane(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come in, or come in again; none at all are aiohttp's own sign to go on parsing."""
        if data and self._lane.take(data):
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        else:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed, whoever closed it."""
        self._lane.lost()
        super().connection_lost(exc)

    def is_idle(self) -> bool:
        """Whether every request before has been answered, and aiohttp waits for the next one."""
        return self._waiter is not None and not self._waiter.done()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer, and close: nobody knows where the next request would begin."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        is_ours = status >= web.HTTPInternalServerError.status_code
        response = bug(request, exc) if is_ours else refusal(_not_http(message or ""))
        response.force_close()
        return response


def _not_http(message: str) -> Failure:
    reason = " ".join(message.split())[:REASON_LENGTH]
    return Failure(ErrorCode.INVALID_REQUEST, f"this is not HTTP as it should be: {reason}")


EXPRESS: Final = web.AppKey("express", Express)
"""What an application that is served here brings with it."""


class Server(web.Server):
    """Makes a `Connection` of each connection."""

    express: Express

    def __call__(self) -> web.RequestHandler:
        """A connection came in."""
        return Connection(self, self.express)


class Runner(web.AppRunner):
    """Serves an application; a request whose connection closes is cancelled."""

    def __init__(self, app: web.Application) -> None:
        super().__init__(app, shutdown_timeout=SHUTDOWN_S)
        self._express = app[EXPRESS]

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        server = Server(
            partial(errors_as_json, handler=plain.request_handler),
            request_factory=plain.request_factory,
            handler_cancellation=True,
        )
        server.express = self._express
        return server
