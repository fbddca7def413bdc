"""Join, sync, heartbeat, leave (protocol §3.1 to §3.4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from protocol.errands import NOTHING, Told
from protocol.messages.base import (
    NO_GENERATION,
    Generation,
    Label,
    Millis,
    PositiveMillis,
    Request,
    Response,
    Revision,
    Text,
    Whole,
    null,
)
from protocol.messages.tasks import OfferedTask
from protocol.names import Name
from protocol.worker_metadata import PROTOCOL_TYPE, metadata_fault


class Protocol(msgspec.Struct, frozen=True):
    """One assignor a member can work with, and what it tells the leader under it."""

    name: Label
    metadata: msgspec.Raw


class JoinRequest(Request, frozen=True, kw_only=True):
    """Enter the group, or rejoin it; the answer waits for the join phase to complete."""

    member_id: str
    session_timeout_ms: Whole
    rebalance_timeout_ms: PositiveMillis
    protocol_type: Label
    protocols: Annotated[tuple[Protocol, ...], msgspec.Meta(extra_json_schema={"minItems": 1})]
    instance_id: Name | None = None
    client_id: Label | None = None
    reason: Text | None = None
    require_member_id: bool = True

    def __post_init__(self) -> None:
        """What a worker tells is looked at here; leaders, the manager and the console can then rely on it."""
        if self.protocol_type != PROTOCOL_TYPE:
            return
        for position, protocol in enumerate(self.protocols):
            if fault := metadata_fault(protocol.metadata, f"protocols[{position}].metadata"):
                raise ValueError(fault)


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as the leader sees it; `draining` is there only when it is to be given no tasks."""

    member_id: str
    instance_id: str | None
    metadata: msgspec.Raw
    draining: bool | msgspec.UnsetType = msgspec.UNSET


class JoinResponse(Response, frozen=True, kw_only=True):
    """The outcome of a join phase; `members` is for the leader only, `tasks` for a sparkherd leader only.

    `more` is there if that is not all of them: an `OfferRequest` asks for those after that name.
    """

    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str
    member_id: str
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    tasks: tuple[OfferedTask, ...] | msgspec.UnsetType = msgspec.UNSET
    more: str | msgspec.UnsetType = msgspec.UNSET


class OfferRequest(Request, frozen=True, kw_only=True):
    """The leader's, before its sync: the next page of the tasks to be placed."""

    member_id: str
    generation_id: Generation
    after: Name
    instance_id: Name | None = None


class OfferResponse(Response, frozen=True, kw_only=True):
    """Tasks whose names come after that one, in order; `more` as in the answer to a join."""

    tasks: tuple[OfferedTask, ...]
    more: str | msgspec.UnsetType = msgspec.UNSET


class MemberAssignment(msgspec.Struct, frozen=True):
    """What the leader gives one member."""

    member_id: str
    assignment: msgspec.Raw


class SyncRequest(Request, frozen=True, kw_only=True):
    """Ask for the own assignment; the leader brings everybody's along."""

    member_id: str
    generation_id: Generation
    instance_id: Name | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[MemberAssignment, ...] = ()


class SyncResponse(Response, frozen=True, kw_only=True):
    """The caller's assignment; null when the leader named none for it."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: msgspec.Raw = msgspec.field(default_factory=null)


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    """Keep the session; with `wait_ms` the answer may be held until something concerns the member.

    `check` and `quarantine` are the errands that the member knows of (protocol §5, Errands).
    """

    member_id: str
    generation_id: Generation
    instance_id: Name | None = None
    wait_ms: Millis = 0
    tasks_revision: Revision | None = None
    check: str | None = None
    quarantine: str | None = None

    @property
    def told(self) -> Told:
        """Both of them."""
        return Told(self.check, self.quarantine)


class HeartbeatResponse(Response, frozen=True, kw_only=True):
    """All is well; `tasks_revision` tells whether a definition or target has changed since.

    `check` and `quarantine` are there while the member has such an errand to do.
    """

    tasks_revision: int
    check: str | msgspec.UnsetType = msgspec.UNSET
    quarantine: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def telling(cls, tasks_revision: int, told: Told) -> HeartbeatResponse:
        """One that has what there is to do."""
        if told == NOTHING:
            return cls(tasks_revision=tasks_revision)
        check, quarantine = (msgspec.UNSET if errand is None else errand for errand in told)
        return cls(tasks_revision=tasks_revision, check=check, quarantine=quarantine)

    @property
    def told(self) -> Told:
        """What there is to do."""
        found = (self.check, self.quarantine)
        return Told(*(None if errand is msgspec.UNSET else errand for errand in found))


class EngineEnd(StrEnum):
    """How the engine of a worker (Spark's JVM) ended that leaves because of it."""

    EXITED = "EXITED"
    """By itself: an exit code that nobody asked for, or a crash. What ran on it has done that."""
    KILLED = "KILLED"
    """By a signal from outside: a person, or a machine that is short of memory."""
    LOST = "LOST"
    """Nobody knows: it cannot be reached any more."""


class Leaver(msgspec.Struct, frozen=True):
    """One entry of a leave: a member, or with `member_id` empty a static member by its instance id.

    `engine` is there only if it leaves because its engine has ended, and says how; `out_of_memory` that it
    seems to have ended for want of heap. Who leaves runs nothing any more; `stopped` false says that a query
    of it may still be at work.
    """

    member_id: str
    instance_id: Name | None = None
    reason: Text | None = None
    engine: EngineEnd | None = None
    stopped: bool = True
    out_of_memory: bool = False


class LeaveRequest(Request, frozen=True, kw_only=True):
    """Members go at once, without waiting for their sessions to end."""

    members: tuple[Leaver, ...]


class LeftMember(msgspec.Struct, frozen=True):
    """How one entry of a leave went."""

    member_id: str
    instance_id: str | None
    error: str


class LeaveResponse(Response, frozen=True, kw_only=True):
    """One outcome an entry, in request order."""

    members: tuple[LeftMember, ...]


def join_failure_fields(member_id: str) -> dict[str, object]:
    """What an error of a join carries beside its code."""
    return {"generation_id": NO_GENERATION, "member_id": member_id}
