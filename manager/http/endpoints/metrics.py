"""GET /metrics: Prometheus's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from manager.http.endpoint import Endpoint
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.http.endpoint import Plain
    from telemetry.metrics import Instruments

MEDIA = ("text/plain", "application/openmetrics-text")


class MetricsHandlers:
    """What a scraper asks."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def endpoints(self) -> list[Endpoint]:
        """GET /metrics."""
        return [
            Endpoint(
                "GET",
                "/metrics",
                "getMetrics",
                "Everything that is measured, for Prometheus",
                self.scrape,
                role=Role.VIEWER,
                response=None,
                media=MEDIA,
            )
        ]

    async def scrape(self, call: Plain) -> web.Response:
        """Everything that is measured, in the form that is asked for."""
        body, content_type = self._instruments.exposition(call.request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})
