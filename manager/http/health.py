"""Liveness and readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from manager.http.replying import reply
from manager.runtime.pending import UNAVAILABLE
from protocol.messages.base import Response

if TYPE_CHECKING:
    from manager.runtime.runtime import Runtime


class HealthHandlers:
    """What a supervisor asks."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[web.RouteDef]:
        """GET /healthz and /readyz."""
        return [web.get("/healthz", self.live), web.get("/readyz", self.ready)]

    async def live(self, _: web.Request) -> web.Response:
        """The event loop turns."""
        return reply(Response())

    async def ready(self, _: web.Request) -> web.Response:
        """Requests are taken, and the storage does what it is asked to."""
        return reply(Response() if self._runtime.is_ready else UNAVAILABLE)
