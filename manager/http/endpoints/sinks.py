"""Which fenced sinks a definition can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.sinks.description import described_sinks
from manager.http.endpoint import Endpoint
from protocol.messages.sinks import SinkListResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Plain


class SinkHandlers:
    """What this manager judges definitions by; managers of one cluster should have the same packages."""

    def endpoints(self) -> list[Endpoint]:
        """GET /v1/sinks."""
        return [
            Endpoint(
                "GET",
                "/v1/sinks",
                "listSinks",
                "The fenced formats of sinks: their options as JSON Schema, and what goes with them",
                self.show,
                role=Role.VIEWER,
                any_group=True,
                response=SinkListResponse,
            )
        ]

    async def show(self, _: Plain) -> Outcome:
        """All of them; what is installed does not change while a manager runs."""
        return SinkListResponse(sinks=described_sinks())
