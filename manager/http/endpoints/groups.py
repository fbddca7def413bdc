"""Groups for admins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.commands import (
    DeleteGroup,
    DescribeGroup,
    DrainMember,
    ListMoves,
    ListRebalances,
    RemoveMember,
    StartRebalance,
)
from manager.http.endpoint import ACCEPTED, Endpoint
from protocol.errors import ErrorCode
from protocol.messages.groups import (
    DescribeGroupResponse,
    RebalanceListResponse,
    RebalanceRequest,
    RebalancesQuery,
)
from protocol.messages.history import MovesResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, Plain
    from manager.runtime.coordinator_runtime import CoordinatorRuntime

GROUP = "/v1/groups/{group}"
MEMBER = f"{GROUP}/members/{{member_id}}"
NO_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND,)
NO_MEMBER = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)


class GroupHandlers:
    """The admin endpoints of groups."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """GET, POST and DELETE below /v1/groups/{group}."""
        return [
            Endpoint(
                "GET",
                GROUP,
                "describeGroup",
                "A group with its members",
                self.describe,
                role=Role.VIEWER,
                response=DescribeGroupResponse,
                errors=NO_GROUP,
            ),
            Endpoint(
                "DELETE",
                GROUP,
                "deleteGroup",
                "Forget an Empty group with its tasks and offsets",
                self.delete,
                role=Role.ADMIN,
                errors=(*NO_GROUP, ErrorCode.NON_EMPTY_GROUP, ErrorCode.TASK_UNDER_TRANSFER),
            ),
            Endpoint(
                "POST",
                f"{GROUP}/rebalance",
                "startRebalance",
                "Bring all members together anew",
                self.rebalance,
                role=Role.OPERATOR,
                body=RebalanceRequest,
                body_optional=True,
                errors=NO_GROUP,
            ),
            Endpoint(
                "GET",
                f"{GROUP}/rebalances",
                "listRebalances",
                "The rebalances of a group, newest first, and what led to them",
                self.rebalances,
                role=Role.VIEWER,
                asks=RebalancesQuery,
                response=RebalanceListResponse,
                errors=NO_GROUP,
            ),
            Endpoint(
                "GET",
                f"{GROUP}/moves",
                "listMoves",
                "Which tasks changed hands lately, oldest first",
                self.moves,
                role=Role.VIEWER,
                response=MovesResponse,
                errors=NO_GROUP,
            ),
            Endpoint(
                "DELETE",
                MEMBER,
                "removeMember",
                "Remove and fence a member; a living one comes back as new",
                self.remove_member,
                role=Role.OPERATOR,
                errors=NO_MEMBER,
            ),
            Endpoint(
                "POST",
                f"{MEMBER}/drain",
                "drainMember",
                "Move a worker's tasks away and keep new ones off it",
                self.drain,
                role=Role.OPERATOR,
                workers_too=True,
                success=(ACCEPTED,),
                errors=NO_MEMBER,
            ),
            Endpoint(
                "DELETE",
                f"{MEMBER}/drain",
                "undrainMember",
                "Let a drained worker have tasks again",
                self.undrain,
                role=Role.OPERATOR,
                success=(ACCEPTED,),
                errors=NO_MEMBER,
            ),
        ]

    async def describe(self, call: Plain) -> Outcome:
        """One group."""
        return await self._runtime.ask(call.group, DescribeGroup())

    async def delete(self, call: Plain) -> Outcome:
        """Forget an Empty group."""
        return await self._runtime.ask(call.group, DeleteGroup())

    async def rebalance(self, call: Call[RebalanceRequest, None]) -> Outcome:
        """Start a rebalance; the body may be left out."""
        return await self._runtime.ask(call.group, StartRebalance(reason=call.body.reason))

    async def rebalances(self, call: Call[None, RebalancesQuery]) -> Outcome:
        """The group's history."""
        return await self._runtime.ask(call.group, ListRebalances(limit=call.asked.limit))

    async def moves(self, call: Plain) -> Outcome:
        """Which tasks changed hands lately."""
        return await self._runtime.ask(call.group, ListMoves())

    async def remove_member(self, call: Plain) -> Outcome:
        """Fence a member."""
        return await self._runtime.ask(call.group, RemoveMember(member_id=call.member))

    async def drain(self, call: Plain) -> Outcome:
        """Move a worker's tasks away and keep new ones off it."""
        return await self._drain(call, draining=True)

    async def undrain(self, call: Plain) -> Outcome:
        """Let a drained worker have tasks again."""
        return await self._drain(call, draining=False)

    async def _drain(self, call: Plain, *, draining: bool) -> Outcome:
        command = DrainMember(member_id=call.member, draining=draining)
        return await self._runtime.ask(call.group, command)
