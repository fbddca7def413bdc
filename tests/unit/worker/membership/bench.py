"""A membership on a bench: what it last wanted, and shorthands for what happens to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from protocol.errors import ErrorCode
from protocol.messages.membership import (
    JoinResponse,
    MemberAssignment,
    Protocol,
    SyncResponse,
)
from tests.fakes.manager import failure
from worker.membership.events import (
    Answered,
    Identity,
    Quit,
    Reason,
    Refused,
    Send,
    Started,
    StopAsked,
    Wait,
    Waited,
)
from worker.membership.reactions import RequestKind
from worker.membership.requests import Terms
from worker.membership.state_machine import Membership
from worker.membership.states import MemberState

if TYPE_CHECKING:
    from worker.membership.events import Effect, Event

E = TypeVar("E")

ME = "worker-1"
TERMS = Terms(client_id="worker", session_timeout_ms=9000, rebalance_timeout_ms=60_000, wait_ms=3000)
FAREWELL = Quit(Reason.ASKED, "stopped by the test")
LOSSES = {ErrorCode.ILLEGAL_GENERATION: ME, ErrorCode.UNKNOWN_MEMBER_ID: ""}
TROUBLE = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
]


class Bench:
    """A membership, what it last wanted, and shorthands for what happens to it."""

    def __init__(self, terms: Terms = TERMS) -> None:
        self.now = 100.0
        self.effects: list[Effect] = []
        self.revisions_offered: list[int] = []
        self.membership = Membership(terms, self._offer, lambda: 0.5)

    def _offer(self, revision: int) -> tuple[Protocol, ...]:
        self.revisions_offered.append(revision)
        return (Protocol("sticky", msgspec.Raw(b"{}")),)

    @property
    def state(self) -> MemberState:
        return self.membership.state

    @property
    def identity(self) -> Identity:
        return self.membership.identity

    def happen(self, event: Event) -> list[Effect]:
        self.effects = self.membership.handle(event, self.now)
        return self.effects

    def wanted(self, kind: type[E]) -> E:
        """The one effect of this kind that the last event led to."""
        found = [effect for effect in self.effects if isinstance(effect, kind)]
        assert len(found) == 1, self.effects
        return found[0]

    def wants(self, kind: type) -> bool:
        return any(isinstance(effect, kind) for effect in self.effects)

    def sent(self, kind: type[E]) -> E:
        """The request of this kind that the last event led to."""
        request = self.wanted(Send).request
        assert isinstance(request, kind), request
        return request

    def answer(self, answer: Any) -> list[Effect]:
        return self.happen(Answered(self.wanted(Send), answer))

    def refuse(self, code: ErrorCode, **fields: Any) -> list[Effect]:
        return self.answer(failure(code, **fields))

    def wait(self) -> list[Effect]:
        return self.happen(Waited(self.wanted(Wait)))

    # The way in, up to each state.

    def to(self, state: MemberState) -> Bench:
        """A follower that has just come to `state`."""
        if state is not MemberState.DOWN:
            self.happen(Started())
        if state is MemberState.PREPARING_JOIN:
            self.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if state in {MemberState.SYNCING, MemberState.STABLE, MemberState.LEAVING}:
            self.answer(joined())
        if state in {MemberState.STABLE, MemberState.LEAVING}:
            self.answer(synced("t1", "t2"))
        if state is MemberState.LEAVING:
            self.happen(StopAsked(FAREWELL))
        assert self.state is state
        return self

    def as_leader(self) -> Bench:
        self.happen(Started())
        self.answer(joined(leader=ME))
        return self


def joined(generation: int = 3, leader: str = "worker-0", *, skip: bool = False) -> JoinResponse:
    return JoinResponse(
        generation_id=generation,
        protocol_type="sparkherd",
        protocol_name="sticky",
        leader_id=leader,
        member_id=ME,
        skip_assignment=skip,
        tasks=(),
    )


def synced(*tasks: str) -> SyncResponse:
    assignment = msgspec.Raw(msgspec.json.encode({"tasks": tasks}))
    return SyncResponse(protocol_type="sparkherd", protocol_name="sticky", assignment=assignment)


def assignments(*tasks: str) -> tuple[MemberAssignment, ...]:
    return (MemberAssignment(ME, msgspec.Raw(msgspec.json.encode({"tasks": tasks}))),)


def refused(
    code: ErrorCode, asked: RequestKind = RequestKind.CLAIM, member: str = ME, generation: int = 3
) -> Refused:
    return Refused(asked, Identity(member, generation), failure(code))
