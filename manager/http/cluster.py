"""Who has which group, which managers there are, and the groups of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from manager.http.replying import refusal, reply
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.groups import CoordinatorResponse, GroupListResponse, GroupSummary
from protocol.names import is_legal_name

if TYPE_CHECKING:
    from manager.cluster.directory import Directory


class ClusterHandlers:
    """What any manager answers, whichever has the group."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def routes(self) -> list[web.RouteDef]:
        """GET /v1/coordinator, /v1/managers and /v1/groups."""
        return [
            web.get("/v1/coordinator", self.coordinator),
            web.get("/v1/managers", self.managers),
            web.get("/v1/groups", self.list_groups),
        ]

    async def coordinator(self, request: web.Request) -> web.Response:
        """Who coordinates a group."""
        name = request.query.get("group", "")
        if not is_legal_name(name):
            raise RefusedError(
                ErrorCode.INVALID_GROUP_ID, "group: name the group whose coordinator is asked for"
            )
        found = self._directory.coordinator(name)
        if found is None:
            message = f"no manager is known to have group {name} at the moment; try again"
            return refusal(Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message))
        return reply(CoordinatorResponse(group=name, coordinator=found))

    async def managers(self, _: web.Request) -> web.Response:
        """All managers, their slots and leases."""
        return reply(await self._directory.managers())

    async def list_groups(self, request: web.Request) -> web.Response:
        """Every group, or those whose state and protocol type are as asked; case does not matter."""
        groups = tuple(group for group in await self._directory.groups() if _matches(group, request))
        return reply(GroupListResponse(groups=groups))


def _matches(group: GroupSummary, request: web.Request) -> bool:
    state, kind = request.query.get("state"), request.query.get("protocol_type")
    return (not state or group.state.lower() == state.lower()) and (
        not kind or (group.protocol_type or "").lower() == kind.lower()
    )
