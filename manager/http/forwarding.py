"""Admin requests that reached a manager which does not have the group: it asks the one that has.

Members find their coordinator themselves, and are told where it is instead.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp import web
from yarl import URL

from manager.http.front.reading import read_body
from manager.http.front.replying import refusal
from protocol.errors import ErrorCode, Failure
from protocol.names import is_legal_name
from protocol.request_timeouts import work_s

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from manager.cluster.directory import Directory
    from manager.http.front.reading import HttpRequest
    from manager.http.front.replying import Handler
    from protocol.messages.groups import Coordinator

FORWARDED_BY = "Sparkherd-Forwarded-By"
"""Carries the id of the manager that asks for somebody: what is forwarded once is not forwarded again."""
PASSED_ON: Final = web.RequestKey("passed on", bool)
"""Whether the answer is another manager's."""
CONNECT_S = 2.0
OUR_OWN = frozenset(
    {
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "expect",
        "keep-alive",
        "origin",
        "sec-fetch-site",
    }
)
"""Headers that concern the connection they came on, or the host that they were sent to."""
PASSED_BACK = (
    "Content-Type",
    "ETag",
    "Location",
    "Retry-After",
    "WWW-Authenticate",
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cache-Control",
)


class Forwarding:
    """Wraps the handlers of what `Endpoint.is_forwarded`. The answer is the owner's, as it gave it."""

    _client: aiohttp.ClientSession

    def __init__(
        self, directory: Directory, this_manager: Coordinator, tls: ssl.SSLContext | None = None
    ) -> None:
        """`tls` is how other managers' certificates are checked."""
        self._directory = directory
        self._this_manager = this_manager
        self._tls = tls

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[None]:
        """Connections to the other managers, as long as the application is served."""
        connector = aiohttp.TCPConnector(ssl=self._tls or True)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._client:
            yield

    def wrap(self, handler: Handler, held_s: float = 0.0) -> Handler:
        """`handler`, but requests for the groups of another manager are sent on to that one.

        `held_s` is for how many seconds the answer may be held there.
        """

        async def handle(request: HttpRequest) -> web.StreamResponse:
            passed = await self.pass_on(request, request.match_info["group"], held_s)
            return await handler(request) if passed is None else passed

        return handle

    async def pass_on(
        self, request: HttpRequest, group: str, held_s: float = 0.0, body: bytes | None = None
    ) -> web.StreamResponse | None:
        """The answer of the manager that has `group`; None if `request` is to be answered here.

        `body` is that of a request whose own was read already.
        """
        if not is_legal_name(group) or FORWARDED_BY in request.headers or self._directory.is_here(group):
            return None
        owner = self._directory.coordinator(group)
        return None if owner is None else await self._forward(request, owner, held_s, body)

    async def _forward(
        self, request: HttpRequest, owner: Coordinator, held_s: float, known: bytes | None = None
    ) -> web.Response:
        body = await read_body(request) if known is None else known
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in OUR_OWN]
        headers.append((FORWARDED_BY, self._this_manager.id))
        url = URL(owner.url.rstrip("/") + request.raw_path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=held_s + work_s(len(body)), sock_connect=CONNECT_S)
        try:
            async with self._client.request(
                request.method, url, data=body, headers=headers, allow_redirects=False, timeout=timeout
            ) as answer:
                passed = {name: answer.headers[name] for name in PASSED_BACK if name in answer.headers}
                body = await answer.read()
                request[PASSED_ON] = True
                return web.Response(status=answer.status, body=body, headers=passed)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            message = f"manager {owner.id} has the group and cannot be reached; try again"
            return refusal(Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message, {"was_sent": False}))
        except (aiohttp.ClientError, TimeoutError, OSError):
            message = (
                f"manager {owner.id} has the group, was asked and gave no answer: whether it has done what "
                "was asked for is not known; look, or try again"
            )
            return refusal(Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message))
