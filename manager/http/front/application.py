"""What a server answers: a handler for each path and method, and an error body for everything else."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11

from manager.http.front.paths import Paths
from manager.http.front.reading import is_announced_too_large
from manager.http.front.replying import not_allowed, not_found, refusal
from manager.runtime.loop_share import LoopShare
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from aiohttp import web

    from manager.http.front.channel import ConnectionListener
    from manager.http.front.reading import HttpRequest
    from manager.http.front.replying import Handler

GO_ON = "100-continue"
MAX_KNOWN = 4096
MAX_LENGTH = 512
"""Paths that are remembered, and the characters of the longest."""


class Application:
    """The handlers of a server.

    Args:
        core: is told of connections that are closed.
        max_request_bytes: larger bodies are refused, unread if they say so themselves.
        headers: what every answer has beside its own.
        session: what is to be open as long as requests are answered.
        share: what requests may take of a pass of the event loop.
    """

    def __init__(
        self,
        core: ConnectionListener,
        max_request_bytes: int,
        headers: Mapping[str, str] | None = None,
        session: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        share: LoopShare | None = None,
    ) -> None:
        self.core = core
        self.max_request_bytes = max_request_bytes
        self.headers = dict(headers or {})
        self.session = session
        self.share = share or LoopShare()
        self._paths: Paths[Handler] = Paths()
        self._known: dict[str, tuple[Mapping[str, Handler], Mapping[str, str]]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Have `handler` answer requests for `path`, as `/v1/groups/{group}`."""
        self._paths.add(method, path, handler)

    async def handle(self, request: HttpRequest) -> web.StreamResponse:
        """Answer a request.

        Raises:
            RefusedError: with what is wrong with it; and whatever else its handler raises.
        """
        target = request.raw_path
        methods, request.match_info = self._known.get(target) or self._find(request, target)
        handler = methods.get(request.method)
        if "Expect" in request.headers and (refused := _expect(request, is_known=handler is not None)):
            return refused
        if handler is None:
            return not_allowed(request, methods) if methods else not_found(request)
        return await handler(request)

    def _find(self, request: HttpRequest, target: str) -> tuple[Mapping[str, Handler], Mapping[str, str]]:
        """What is at a path; remembered if it leads somewhere, for members ask for the same ones again."""
        found = self._paths.find(request.rel_url.path_safe)
        if found[0] and "?" not in target and len(target) <= MAX_LENGTH:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[target] = found
        return found


def _expect(request: HttpRequest, *, is_known: bool) -> web.Response | None:
    """Tell a client that waits for it to send its body, unless it would be refused for its size."""
    expected = request.headers["Expect"]
    if expected.lower() != GO_ON:
        wrong = Failure(ErrorCode.INVALID_REQUEST, f"Expectation Failed: Unknown Expect: {expected}")
        return None if is_known else refusal(wrong)
    if request.version >= HttpVersion11 and request.transport and not is_announced_too_large(request):
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return None
