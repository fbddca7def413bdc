"""GET /metrics: Prometheus's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from telemetry.metrics import Instruments


class MetricsHandlers:
    """What a scraper asks."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def routes(self) -> list[web.RouteDef]:
        """GET /metrics."""
        return [web.get("/metrics", self.scrape)]

    async def scrape(self, request: web.Request) -> web.Response:
        """Everything that is measured, in the form that is asked for."""
        body, content_type = self._instruments.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})
