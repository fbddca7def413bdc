"""Who has which group, which managers there are, and the groups of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.http.authorization import caller_of
from manager.http.endpoint import Endpoint
from manager.http.paging import page_of
from protocol.errors import ErrorCode, Failure
from protocol.messages.assignors import AssignorListQuery, AssignorListResponse
from protocol.messages.cluster import ManagerListResponse
from protocol.messages.groups import CoordinatorQuery, CoordinatorResponse, GroupListQuery, GroupListResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, Plain
    from protocol.messages.groups import GroupSummary


class ClusterHandlers:
    """What any manager answers, whichever has the group."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def endpoints(self) -> list[Endpoint]:
        """GET /v1/coordinator, /v1/managers, /v1/groups and /v1/assignors."""
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
            Endpoint(
                "GET",
                "/v1/assignors",
                "listAssignors",
                "Which assignors the members of each group announce, and which was chosen",
                self.list_assignors,
                role=Role.VIEWER,
                any_group=True,
                asks=AssignorListQuery,
                response=AssignorListResponse,
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
        allowed = (group for group in matching if caller.covers(group.group))
        groups, following = page_of(allowed, lambda group: group.group, call.asked)
        return GroupListResponse(groups=groups, next=following)

    async def list_assignors(self, call: Call[None, AssignorListQuery]) -> Outcome:
        """What the members of each group announce, or of the one that is asked for."""
        caller, name = caller_of(call.request), call.asked.group
        known = await self._directory.announced_assignors()
        wanted = (each for each in known if name in {None, each.group} and caller.covers(each.group))
        groups, following = page_of(wanted, lambda each: each.group, call.asked)
        return AssignorListResponse(groups=groups, next=following)


def _matches(group: GroupSummary, asked: GroupListQuery) -> bool:
    state, kind = asked.state, asked.protocol_type
    return (not state or group.state.lower() == state.lower()) and (
        not kind or (group.protocol_type or "").lower() == kind.lower()
    )
