"""The HTTP server: what goes wrong before a request reaches its handler has an error body too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import web

from manager.http.express import Express
from manager.http.limits import Limits, Peers
from manager.http.replying import bug, errors_as_json, refusal
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import StreamReader

    _Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

SHUTDOWN_S = 2.0
"""How long answers that were given at the end may take to leave."""

REASON_LENGTH = 200


class Connection(web.RequestHandler):
    """One connection; what does not parse as HTTP is answered as everything else is.

    Heartbeats have a lane of their own on it (`manager.http.express`).
    """

    __slots__ = ("_address", "_body", "_deadline", "_lane", "_limits", "_peers")

    def __init__(self, server: web.Server, express: Express, limits: Limits, peers: Peers) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), keepalive_timeout=limits.idle_s)
        self._lane = express.lane(self)
        self._limits = limits
        self._peers = peers
        self._address: str | None = None
        self._body: StreamReader | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open; one too many of its address is closed again."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._peers.enter(self._address) and isinstance(transport, asyncio.Transport):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes have come in, or come in again; none at all are aiohttp's own sign to go on parsing."""
        if data and self._lane.take(data):
            self.rest()
        else:
            super().data_received(data)
            self._look_after()

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed, whoever closed it."""
        if self._address is not None:
            self._peers.leave(self._address)
        self._settle()
        self._lane.lost()
        super().connection_lost(exc)

    def _look_after(self) -> None:
        """A request that is not there as a whole has only so long; one that is may be held as it likes."""
        if self._messages:
            self._body = self._messages[-1][1]
        has_half_a_head = self.is_idle()
        if not has_half_a_head and (self._body is None or self._body.is_eof()):
            self._settle()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(self._limits.request_s, self._cut)

    def _settle(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        if self.transport is not None:
            self.transport.abort()

    def rest(self) -> None:
        """From now on it has nothing to do; it may stay open for a while."""
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout

    def _process_keepalive(self) -> None:
        """Close the connection if nobody has asked anything for long.

        In place of aiohttp's own, which would close one whose heartbeat is held in the lane, and never one
        that was silent from the beginning.
        """
        self._keepalive_handle = None
        if self._force_close:
            return
        now = self._loop.time()
        if self._lane.is_holding or not self.is_idle():
            self.rest()
        if now < self._next_keepalive_close_time:
            self._keepalive_handle = self._loop.call_at(
                self._next_keepalive_close_time, self._process_keepalive
            )
        else:
            self.force_close()

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
    limits: Limits
    peers: Peers

    def __call__(self) -> web.RequestHandler:
        """A connection came in."""
        return Connection(self, self.express, self.limits, self.peers)


class Runner(web.AppRunner):
    """Serves an application; a request whose connection closes is cancelled."""

    def __init__(self, app: web.Application, limits: Limits | None = None) -> None:
        super().__init__(app, shutdown_timeout=SHUTDOWN_S)
        self._express = app[EXPRESS]
        self._limits = limits or Limits()

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        server = Server(
            partial(errors_as_json, handler=plain.request_handler),
            request_factory=plain.request_factory,
            handler_cancellation=True,
        )
        server.express = self._express
        server.limits = self._limits
        server.peers = Peers(self._limits.connections)
        return server
