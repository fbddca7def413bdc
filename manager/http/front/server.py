"""The HTTP server: aiohttp's low-level one, with a `Channel` in front of each of its connections."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from manager.http.front.channel import Channel, Shared
from manager.http.front.limits import Limits
from manager.http.front.reading import HttpRequest
from manager.http.front.replying import bug, error_as_json, refusal
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from aiohttp import StreamReader
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import RawRequestMessage

    from manager.http.front.application import Application

SHUTDOWN_S = 2.0
"""How long answers that were given at the end may take to leave."""

REASON_LENGTH = 200


class HttpProtocol(web.RequestHandler):
    """Aiohttp's; what does not parse as HTTP is answered as everything else is."""

    __slots__ = ()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """What nobody foresaw. A body that cannot be read was refused, which is all there is to say of it."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

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


class Server(web.Server):
    """Makes a channel of each connection, and has the application answer each request.

    A request whose connection closes is cancelled.
    """

    def __init__(self, app: Application, limits: Limits) -> None:
        super().__init__(self.answer, request_factory=self.received, handler_cancellation=True)
        self.loop = asyncio.get_running_loop()
        self.app = app
        self.shared = Shared(limits, app.core)

    def __call__(self) -> Any:
        """A connection came in; `Any`, as aiohttp says that it can only be its own protocol."""
        http = HttpProtocol(self, loop=self.loop, keepalive_timeout=self.shared.limits.idle_s)
        return Channel(http, self.shared)

    def received(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> HttpRequest:
        """A request came in: the head of it, and perhaps its body."""
        most = self.app.max_request_bytes
        return HttpRequest(message, payload, protocol, writer, task, self.loop, client_max_size=most)

    async def answer(self, received: web.BaseRequest) -> web.StreamResponse:
        """Have a request answered; nothing leaves as anything but a body with a code."""
        request = cast("HttpRequest", received)
        channel = request.transport
        if not isinstance(channel, Channel):
            raise ConnectionResetError("the connection is closed already")
        channel.begin(request.content)
        request.link = channel.link
        request.common_headers = self.app.headers
        request.share = self.app.share
        try:
            response = await self.app.handle(request)
        except Exception as error:  # noqa: BLE001 - a bug in one handler must not take others down
            response = error_as_json(request, error)
        finally:
            channel.end()
        if self.app.headers and not response.prepared:
            response.headers.update(self.app.headers)
        return response


class Runner(web.ServerRunner):
    """Serves an application on aiohttp's sites."""

    def __init__(self, app: Application, limits: Limits | None = None) -> None:
        super().__init__(Server(app, limits or Limits()), shutdown_timeout=SHUTDOWN_S)
        self.app = app
        self.open = AsyncExitStack()

    async def setup(self) -> None:
        """Open what requests need."""
        await self.open.enter_async_context(self.app.session())
        await super().setup()

    async def cleanup(self) -> None:
        """Let what is being answered come to its end, for `SHUTDOWN_S` at most."""
        await super().cleanup()
        await self.open.aclose()
