"""Liveness and readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.http.endpoint import Endpoint
from manager.runtime.replies import UNAVAILABLE
from protocol.messages.base import Response

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Plain
    from manager.runtime.coordinator_runtime import CoordinatorRuntime


class HealthHandlers:
    """What a supervisor asks."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """GET /healthz and /readyz."""
        return [
            Endpoint(
                "GET",
                "/healthz",
                "isAlive",
                "Whether the manager's loop turns",
                self.live,
                role=None,
                counted=False,
            ),
            Endpoint(
                "GET",
                "/readyz",
                "isReady",
                "Whether requests are taken and stored",
                self.ready,
                role=None,
                counted=False,
            ),
        ]

    async def live(self, _: Plain) -> Outcome:
        """The event loop turns."""
        return Response()

    async def ready(self, _: Plain) -> Outcome:
        """Requests are taken, and the storage does what it is asked to."""
        return Response() if self._runtime.is_ready else UNAVAILABLE
