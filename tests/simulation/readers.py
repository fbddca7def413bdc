"""Readers: members as Kafka's old consumers are, which heartbeat without waiting and commit offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.base import decode_opaque, encode_opaque
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    MemberAssignment,
    Protocol,
    SyncRequest,
)
from protocol.messages.offsets import CommitOffsetsRequest, OffsetToCommit
from tests.simulation.participant import Participant
from tests.simulation.violations import hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from protocol.messages.membership import JoinResponse, SyncResponse
    from tests.simulation.network import Route
    from tests.simulation.world import World

HEARTBEAT_MS = 400
RETRY_MS = 150
FATAL = {
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """What kind of reader it is; a deaf one goes on in its generation, whatever it is told of a rebalance."""

    protocols: tuple[str, ...]
    instance_id: str | None
    session_ms: int
    rebalance_ms: int
    is_deaf: bool


class SimReader(Participant):
    """Joins, syncs, heartbeats, commits; what it is given says for which generation."""

    def __init__(self, world: World, route: Route, name: str, habits: Habits) -> None:
        super().__init__(world, route, name)
        self.habits = habits
        self.protocols = habits.protocols
        self.instance_id = habits.instance_id
        self.member_id = ""
        self.generation = -1
        self.is_stable = False
        self._turn = 0
        self._join()

    @property
    def membership_id(self) -> str:
        """Its member id."""
        return self.member_id

    @property
    def settled_in(self) -> int | None:
        """The generation, once it has its assignment."""
        return self.generation if self.is_stable else None

    def calm_down(self) -> None:
        """Whoever has not been deaf so far listens from now on."""
        if not self.is_stable:
            self.habits = replace(self.habits, is_deaf=False)

    def stop(self) -> None:
        """Leave, and be gone whatever the answer."""
        self._when_awake(self._leave)

    def _leave(self) -> None:
        if self.member_id:
            leaver = Leaver(self.member_id, self.instance_id, "closing")
            self.route.ask(LeaveRequest(members=(leaver,)), lambda _: None)
        self.is_alive = False

    def _try(self, request: Request, done: Callable[[Any], None]) -> None:
        """Ask until somebody who has the group answers; only the latest conversation goes on."""
        self._turn += 1
        self.ask(request, partial(self._answered, self._turn, request, done))

    def _answered(self, turn: int, request: Request, done: Callable[[Any], None], outcome: Any) -> None:
        if turn != self._turn:
            return
        if not isinstance(outcome, Failure):
            done(outcome)
        elif outcome.code in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}:
            self.later(RETRY_MS, lambda: self._retry(turn, request, done))
        else:
            self._react(outcome)

    def _retry(self, turn: int, request: Request, done: Callable[[Any], None]) -> None:
        if turn == self._turn:
            self._try(request, done)

    def _react(self, failure: Failure) -> None:
        if self.habits.is_deaf and self.is_stable and failure.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.later(HEARTBEAT_MS, self._beat)
            return
        if failure.code in FATAL or (self.habits.is_deaf and self.is_stable):
            self.is_alive = False
            return
        self.is_stable = False
        if failure.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = str(failure.fields["member_id"])
        elif failure.code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1
        elif failure.code is ErrorCode.ILLEGAL_GENERATION:
            self.generation = -1
        self.later(self.world.some(0, 50), self._join)

    def _join(self) -> None:
        request = JoinRequest(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.name,
            session_timeout_ms=self.habits.session_ms,
            rebalance_timeout_ms=self.habits.rebalance_ms,
            protocol_type="consumer",
            protocols=tuple(Protocol(name, encode_opaque({"of": self.name})) for name in self.protocols),
        )
        self._try(request, self._joined)

    def _joined(self, joined: JoinResponse) -> None:
        self.member_id, self.generation = joined.member_id, joined.generation_id
        hold("all can speak the chosen protocol", joined.protocol_name in self.protocols, joined)
        given = encode_opaque({"generation": joined.generation_id})
        leads = joined.leader_id == joined.member_id and not joined.skip_assignment
        members = joined.members if leads else ()
        request = SyncRequest(
            member_id=self.member_id,
            instance_id=self.instance_id,
            generation_id=self.generation,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=tuple(MemberAssignment(member.member_id, given) for member in members),
        )
        self._try(request, self._synced)

    def _synced(self, synced: SyncResponse) -> None:
        told = decode_opaque(synced.assignment)
        hold(
            "an assignment is of its generation",
            told is None or told["generation"] == self.generation,
            (told, self.generation),
        )
        self.is_stable = True
        self._beat()

    def _beat(self) -> None:
        request = HeartbeatRequest(
            member_id=self.member_id, instance_id=self.instance_id, generation_id=self.generation
        )
        self._try(request, self._beaten)

    def _beaten(self, _: Any) -> None:
        if self.world.happens(0.3):
            offset = encode_opaque([self.generation, self.world.steps])
            request = CommitOffsetsRequest(
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation_id=self.generation,
                offsets={self.name: OffsetToCommit(offset)},
            )
            self._try(request, self._committed)
        else:
            self.later(HEARTBEAT_MS, self._beat)

    def _committed(self, _: Any) -> None:
        self.later(HEARTBEAT_MS, self._beat)
