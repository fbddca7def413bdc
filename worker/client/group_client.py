"""The requests of one member of one group, each sent to the group's coordinator (protocol §3, §5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import msgspec

from protocol.errors import ErrorCode, Failure
from protocol.messages.base import Request, Response
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.errands import ErrandReport, ErrandRequest
    from worker.client.discovery import Discovery
    from worker.client.transport import Transport


MARGIN_S = 5.0
"""For the way there and back and the work in between, beyond what an answer may be held."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time-out of each request, in seconds.

    `margin_s` shrinks with short sessions: a lost heartbeat, or a lost page of the offer, must leave time to
    find another manager, and for that one to take over.
    """

    parked_s: float
    margin_s: float
    batch_s: float
    """Of a release or a report; what is answered a session later confirms nothing any more."""

    @classmethod
    def of(cls, *, session_timeout_ms: int, rebalance_timeout_ms: int) -> Timeouts:
        """The time-outs that go with a worker's settings."""
        return cls(
            parked_s=rebalance_timeout_ms / 1000 + MARGIN_S,
            margin_s=min(MARGIN_S, session_timeout_ms / 4000),
            batch_s=min(2 * MARGIN_S, session_timeout_ms / 1000),
        )

    def heartbeat_s(self, wait_ms: int) -> float:
        """Of a heartbeat that may be held `wait_ms`."""
        return wait_ms / 1000 + self.margin_s

    def claim_s(self, wait_ms: int) -> float:
        """Of a claim that may wait `wait_ms`; hundreds of tokens have to become durable before its answer."""
        return wait_ms / 1000 + 2 * MARGIN_S

    @property
    def leave_s(self) -> float:
        """Of a leave."""
        return self.margin_s


Body = TypeVar("Body", bound=msgspec.Struct)


class GroupClient:
    """Asks the coordinator, whichever manager that is at the moment.

    `accepted` is called with the time, by `now`, at which a request was *sent* that the manager accepted:
    each one renews the member's session (protocol §3.3), and with it the worker's lease on itself.
    `answered` is told each answer, and to which operation.
    """

    def __init__(
        self,
        transport: Transport,
        discovery: Discovery,
        *,
        group: str,
        timeouts: Timeouts,
        now: Callable[[], float],
        accepted: Callable[[float], None],
        answered: Callable[[str, msgspec.Struct], None] = lambda _, __: None,
    ) -> None:
        self._transport = transport
        self._discovery = discovery
        self._path = f"/v1/groups/{group}/"
        self._timeouts = timeouts
        self._now = now
        self._accepted = accepted
        self._answered = answered

    async def join(self, request: JoinRequest) -> JoinResponse | Failure:
        """Enter or re-enter the group; answered when the join phase is complete."""
        return await self._as_member("join", request, JoinResponse, self._timeouts.parked_s)

    async def offer(self, request: OfferRequest) -> OfferResponse | Failure:
        """Hear of more of the tasks to be placed, as the leader."""
        return await self._as_member("offer", request, OfferResponse, self._timeouts.margin_s)

    async def sync(self, request: SyncRequest) -> SyncResponse | Failure:
        """Hear the own assignment; answered when the leader's is durable."""
        return await self._as_member("sync", request, SyncResponse, self._timeouts.parked_s)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse | Failure:
        """Keep the session; a rebalance in progress renews it too (protocol §4, Heartbeat)."""
        sent = self._now()
        timeout_s = self._timeouts.heartbeat_s(request.wait_ms)
        answer = await self._as_member("heartbeat", request, HeartbeatResponse, timeout_s)
        if isinstance(answer, Failure) and answer.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._accepted(sent)
        return answer

    async def claim(self, request: ClaimRequest) -> ClaimResponse | Failure:
        """Take tasks over."""
        timeout_s = self._timeouts.claim_s(request.wait_ms)
        return await self._as_member("claim", request, ClaimResponse, timeout_s)

    async def release(self, request: ReleaseRequest) -> TaskErrorsResponse | Failure:
        """Let go of tasks."""
        return await self._as_member("release", request, TaskErrorsResponse, self._timeouts.batch_s)

    async def report(self, request: ReportRequest) -> TaskErrorsResponse | Failure:
        """Tell how tasks are doing."""
        return await self._as_member("report", request, TaskErrorsResponse, self._timeouts.batch_s)

    async def lag(self, request: LagRequest) -> LagResponse | Failure:
        """Tell how far tasks that nobody owns are behind, and hear which those are."""
        return await self._as_member("lag", request, LagResponse, self._timeouts.batch_s)

    async def fetch_errand(self, request: ErrandRequest, into: type[Body]) -> Body | Failure:
        """Hear what is to be done, as an `into`."""
        return await self._about_errand("fetch", request, into)

    async def report_errand(self, request: ErrandReport) -> Response | Failure:
        """Tell what has come of an errand."""
        return await self._about_errand("report", request, Response)

    async def _about_errand(self, verb: str, request: ErrandRequest, into: type[Body]) -> Body | Failure:
        kind, timeout_s = request.kind, self._timeouts.batch_s
        return await self._as_member(f"{kind.place}/{verb}", request, into, timeout_s, f"{verb}_{kind.value}")

    async def leave(self, request: LeaveRequest) -> LeaveResponse | Failure:
        """Go."""
        return await self._ask("leave", request, LeaveResponse, self._timeouts.leave_s)

    async def drain(self, member_id: str) -> Response | Failure:
        """Have every task of a member moved away."""
        return await self._ask(
            f"members/{quote(member_id)}/drain", Request(), Response, self._timeouts.leave_s
        )

    async def _as_member(
        self,
        operation: str,
        request: msgspec.Struct,
        expected: type[Body],
        timeout_s: float,
        counted_as: str | None = None,
    ) -> Body | Failure:
        sent = self._now()
        answer = await self._ask(operation, request, expected, timeout_s, counted_as)
        if not isinstance(answer, Failure):
            self._accepted(sent)
        return answer

    async def _ask(
        self,
        operation: str,
        request: msgspec.Struct,
        expected: type[Body],
        timeout_s: float,
        counted_as: str | None = None,
    ) -> Body | Failure:
        answer = await self._ask_coordinator(operation, request, expected, timeout_s)
        self._answered(counted_as or operation.rpartition("/")[2], answer)
        return answer

    async def _ask_coordinator(
        self, operation: str, request: msgspec.Struct, expected: type[Body], timeout_s: float
    ) -> Body | Failure:
        coordinator = await self._discovery.coordinator()
        if isinstance(coordinator, Failure):
            return coordinator
        answer = await self._transport.post(
            coordinator + self._path + operation, request, expected, timeout_s
        )
        if isinstance(answer, Failure):
            self._discovery.learn(coordinator, answer)
        return answer
