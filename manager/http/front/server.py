"""The HTTP server: what goes wrong before a request reaches its handler has an error body too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from aiohttp import web

from manager.core.connections import Connection as Link
from manager.http.front.express import Express
from manager.http.front.limits import Limits, Peers
from manager.http.front.replying import bug, errors_as_json, refusal
from manager.http.front.tcp_info import Watch
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

    Heartbeats have a lane of their own on it (`manager.http.front.express`).
    """

    __slots__ = (
        "_address",
        "_body",
        "_deadline",
        "_lane",
        "_limits",
        "_peers",
        "_reading_deadline",
        "_runtime",
        "_watch",
        "link",
    )

    def __init__(self, server: web.Server, express: Express, limits: Limits, peers: Peers) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), keepalive_timeout=limits.idle_s)
        self.link = Link()
        self._runtime = express.runtime
        self._lane = express.lane(self)
        self._limits = limits
        self._peers = peers
        self._address: str | None = None
        self._body: StreamReader | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_deadline: asyncio.TimerHandle | None = None
        self._watch: Watch | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open; one too many of its address is closed again."""
        super().connection_made(transport)
        opened = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        if opened.get_extra_info("sslcontext") is None:
            # With TLS, half a megabyte waits before this is told: it sends its own opening only while it is
            # read from, and a connection that is stopped at the first byte would never get that far.
            opened.set_write_buffer_limits(high=1, low=0)
        else:
            self._watch_reader(opened)
        peer = opened.get_extra_info("peername")
        self._address = self.link.host = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._peers.enter(self._address):
            self.cut()

    def _watch_reader(self, transport: asyncio.Transport) -> None:
        """`transport` is kept, as in `_wait_for_reader`."""
        sock = transport.get_extra_info("socket")
        watch = Watch(sock, self._limits.answer_s, partial(self._give_up, transport))
        if watch.begin(self._loop):
            self._watch = watch

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
        self._forget_reader()
        if self._watch is not None:
            self._watch.end()
        self._lane.lost()
        self._runtime.closed(self.link, by_peer=not self._is_ended())
        super().connection_lost(exc)

    def _is_ended(self) -> bool:
        """Whether this end has closed it, or was about to after an answer."""
        return self._force_close or self._close or not self._keepalive

    def pause_writing(self) -> None:
        """Something of an answer waits to be taken: until it is, nothing more is heard from there."""
        super().pause_writing()
        self._pause_transport_reading()
        if self.transport is not None and self._watch is None:
            self._wait_for_reader(self.transport)

    def resume_writing(self) -> None:
        """Everything was taken."""
        super().resume_writing()
        self._forget_reader()
        if not (self._reading_paused or self._buffer_paused):
            self._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        """Aiohttp goes on reading for reasons of its own; not before the answers are taken."""
        if not self.writing_paused:
            super()._resume_transport_reading()

    def _wait_for_reader(self, transport: asyncio.Transport) -> None:
        """`transport` is kept: aiohttp forgets the one that it has closed, which still has what to send."""
        unread = transport.get_write_buffer_size()
        self._reading_deadline = self._loop.call_later(
            self._limits.answer_s, self._reading_is_due, transport, unread
        )

    def _reading_is_due(self, transport: asyncio.Transport, unread: int) -> None:
        """Whoever has taken something of the `unread` bytes has time again."""
        if transport.get_write_buffer_size() < unread:
            self._wait_for_reader(transport)
        else:
            self._give_up(transport)

    def _give_up(self, transport: asyncio.Transport) -> None:
        self._force_close = True
        transport.abort()

    def _forget_reader(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None

    def _look_after(self) -> None:
        """A request that is not there as a whole has only so long; one that is may be held as it likes."""
        if self._messages:
            self._body = self._messages[-1][1]
        has_half_a_head = self.is_idle()
        if not has_half_a_head and (self._body is None or self._body.is_eof()):
            self._settle()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(self._limits.request_s, self._time_out)

    def _settle(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        self._deadline = None
        self.cut()

    def cut(self) -> None:
        """Close it at once."""
        self._force_close = True
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
