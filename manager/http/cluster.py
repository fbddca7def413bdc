"""Who has which group, which managers there are, and the groups of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.http.endpoints import Endpoint
from manager.http.guard import caller_of
from protocol.errors import ErrorCode, Failure
from protocol.messages.cluster import ManagerListResponse
from protocol.messages.groups import CoordinatorQuery, CoordinatorResponse, GroupListQuery, GroupListResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
    from manager.core.turn import Outcome
    from manager.http.endpoints import Call, Plain
    from protocol.messages.groups import GroupSummary


class ClusterHandlers:
    """What any manager answers, whichever has the group."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def endpoints(self) -> list[Endpoint]:
        """GET /v1/coordinator, /v1/managers and /v1/groups."""
        return [
            Endpoint(
                "GET",
                "/v1/coordinator",
                "findCoordinator",
                "The manager that has a group",
                self.coordinator,
                role=Role.VIEWER,
                workers_too=True,
                asks=CoordinatorQuery,
                response=CoordinatorResponse,
            ),
            Endpoint(
                "GET",
                "/v1/managers",
                "listManagers",
                "All managers, their slots and leases",
                self.managers,
                role=Role.VIEWER,
                any_group=True,
                response=ManagerListResponse,
            ),
            Endpoint(
                "GET",
                "/v1/groups",
                "listGroups",
                "All groups of the cluster",
                self.list_groups,
                role=Role.VIEWER,
                any_group=True,
                asks=GroupListQuery,
                response=GroupListResponse,
            ),
        ]

    async def coordinator(self, call: Call[None, CoordinatorQuery]) -> Outcome:
        """Who coordinates a group."""
        name = call.asked.group
        found = self._directory.coordinator(name)
        if found is None:
            message = f"no manager is known to have group {name} at the moment; try again"
            return Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
        return CoordinatorResponse(group=name, coordinator=found)

    async def managers(self, _: Plain) -> Outcome:
        """All managers, their slots and leases."""
        return await self._directory.managers()

    async def list_groups(self, call: Call[None, GroupListQuery]) -> Outcome:
        """Every group, or those whose state and protocol type are as asked; case does not matter."""
        caller = caller_of(call.request)
        matching = (group for group in await self._directory.groups() if _matches(group, call.asked))
        return GroupListResponse(groups=tuple(group for group in matching if caller.covers(group.group)))


def _matches(group: GroupSummary, asked: GroupListQuery) -> bool:
    state, kind = asked.state, asked.protocol_type
    return (not state or group.state.lower() == state.lower()) and (
        not kind or (group.protocol_type or "").lower() == kind.lower()
    )
