"""What members send: one handler for every request whose body goes to the group as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.http.endpoint import Endpoint
from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    OfferRequest,
    OfferResponse,
    SyncRequest,
    SyncResponse,
    join_failure_fields,
)
from protocol.messages.offsets import (
    CommitOffsetsRequest,
    DeleteOffsetsRequest,
    FetchOffsetsRequest,
    FetchOffsetsResponse,
    OffsetErrorsResponse,
)
from protocol.messages.ownership import (
    ClaimRequest,
    ClaimResponse,
    LagRequest,
    LagResponse,
    ReleaseRequest,
    ReportRequest,
    TaskErrorsResponse,
)
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from manager.core.turn import Outcome
    from manager.http.endpoint import Call
    from manager.runtime.coordinator_runtime import CoordinatorRuntime

GROUP = "/v1/groups/{group}"
NOT_A_MEMBER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
NOT_NOW = (*NOT_A_MEMBER, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class MemberHandlers:
    """The endpoints of members."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """POST /v1/groups/{group}/..."""
        return [*self._membership(), *self._ownership(), *self._offsets()]

    def _membership(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                f"{GROUP}/join",
                "join",
                "Enter the group or rejoin it; answered when the join phase completes",
                self.join,
                role=Role.WORKER,
                body=JoinRequest,
                response=JoinResponse,
                errors=(
                    *NOT_A_MEMBER,
                    ErrorCode.MEMBER_ID_REQUIRED,
                    ErrorCode.INVALID_SESSION_TIMEOUT,
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    ErrorCode.REBALANCE_IN_PROGRESS,
                ),
                error_fields=join_failure_fields(""),
            ),
            Endpoint(
                "POST",
                f"{GROUP}/offer",
                "offer",
                "More of the tasks to be placed, for the leader between its join and its sync",
                self.ask,
                role=Role.WORKER,
                body=OfferRequest,
                response=OfferResponse,
                errors=NOT_NOW,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/sync",
                "sync",
                "The own assignment; the leader brings everybody's along",
                self.ask,
                role=Role.WORKER,
                body=SyncRequest,
                response=SyncResponse,
                errors=(*NOT_NOW, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.INVALID_ASSIGNMENT),
            ),
            Endpoint(
                "POST",
                f"{GROUP}/heartbeat",
                "heartbeat",
                "Keep the session; may be held until something concerns the member",
                self.ask,
                role=Role.WORKER,
                urgent=True,
                body=HeartbeatRequest,
                response=HeartbeatResponse,
                errors=NOT_NOW,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/leave",
                "leave",
                "Members go at once; each has an error of its own in the answer",
                self.ask,
                role=Role.WORKER,
                body=LeaveRequest,
                response=LeaveResponse,
            ),
        ]

    def _ownership(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                f"{GROUP}/claim",
                "claimTasks",
                "Take over tasks that the present assignment gives to the caller",
                self.ask,
                role=Role.WORKER,
                body=ClaimRequest,
                response=ClaimResponse,
                errors=NOT_NOW,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/release",
                "releaseTasks",
                "Let go of tasks; each has an error of its own in the answer",
                self.ask,
                role=Role.WORKER,
                body=ReleaseRequest,
                response=TaskErrorsResponse,
                errors=NOT_A_MEMBER,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/report",
                "reportTasks",
                "How tasks are doing; each has an error of its own in the answer",
                self.ask,
                role=Role.WORKER,
                body=ReportRequest,
                response=TaskErrorsResponse,
                errors=NOT_A_MEMBER,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/lag",
                "tellLag",
                "How far tasks that nobody owns are behind, by the leader, who is told which those are",
                self.ask,
                role=Role.WORKER,
                body=LagRequest,
                response=LagResponse,
                errors=NOT_A_MEMBER,
            ),
        ]

    def _offsets(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                f"{GROUP}/offsets/commit",
                "commitOffsets",
                "Store offsets; each has an error of its own in the answer",
                self.ask,
                role=Role.WORKER,
                body=CommitOffsetsRequest,
                response=OffsetErrorsResponse,
                errors=(*NOT_NOW, ErrorCode.GROUP_ID_NOT_FOUND),
            ),
            Endpoint(
                "POST",
                f"{GROUP}/offsets/fetch",
                "fetchOffsets",
                "Read offsets; what is unknown has a null offset",
                self.ask,
                role=Role.WORKER,
                body=FetchOffsetsRequest,
                response=FetchOffsetsResponse,
            ),
            Endpoint(
                "POST",
                f"{GROUP}/offsets/delete",
                "deleteOffsets",
                "Forget offsets of an Empty group; each has an error of its own in the answer",
                self.ask,
                role=Role.ADMIN,
                body=DeleteOffsetsRequest,
                response=OffsetErrorsResponse,
                errors=(ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP),
            ),
        ]

    def ask(self, call: Call[Any, None]) -> Awaitable[Outcome]:
        """Put the body to the group."""
        return self._runtime.ask(call.group, call.body, call.connection)

    async def join(self, call: Call[JoinRequest, None]) -> Outcome:
        """As any; but an error of a join echoes the id (protocol §3.1)."""
        outcome = await self.ask(call)
        if isinstance(outcome, Failure):
            fields = join_failure_fields(call.body.member_id) | outcome.fields
            return msgspec.structs.replace(outcome, fields=fields)
        return outcome
