"""The HTTP server: what goes wrong before a request reaches its handler has an error body too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from manager.http.replying import bug, errors_as_json, refusal
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    _Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

SHUTDOWN_S = 2.0
"""How long answers that were given at the end may take to leave."""

REASON_LENGTH = 200


class Connection(web.RequestHandler):
    """One connection; what does not parse as HTTP is answered as everything else is."""

    __slots__ = ()

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
    """Makes a `Connection` of each connection."""

    def __call__(self) -> web.RequestHandler:
        """A connection came in."""
        return Connection(self, loop=asyncio.get_running_loop())


class Runner(web.AppRunner):
    """Serves an application; a request whose connection closes is cancelled."""

    def __init__(self, app: web.Application) -> None:
        super().__init__(app, shutdown_timeout=SHUTDOWN_S)

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return Server(
            partial(errors_as_json, handler=plain.request_handler),
            request_factory=plain.request_factory,
            handler_cancellation=True,
        )
