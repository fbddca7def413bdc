"""The requests of a membership, from who the member is and on which terms it takes part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from protocol.messages.base import decode_opaque
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    OfferRequest,
    SyncRequest,
)
from protocol.worker_metadata import PROTOCOL_TYPE, TaskAssignment

if TYPE_CHECKING:
    from protocol.errands import Told
    from protocol.messages.membership import JoinResponse, MemberAssignment, Protocol, SyncResponse
    from worker.membership.events import Identity, Quit


@dataclass(frozen=True, slots=True)
class Terms:
    """What stays the same from one join to the next; `eager` members let go of everything before a join."""

    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    wait_ms: int
    instance_id: str | None = None
    eager: bool = False


def join_request(
    terms: Terms, identity: Identity, protocols: tuple[Protocol, ...], reason: str
) -> JoinRequest:
    """A join; `protocols` are the assignors in order of preference, each with the worker's metadata."""
    return JoinRequest(
        member_id=identity.member_id,
        instance_id=terms.instance_id,
        client_id=terms.client_id,
        session_timeout_ms=terms.session_timeout_ms,
        rebalance_timeout_ms=terms.rebalance_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason,
    )


def offer_request(terms: Terms, joined: JoinResponse, after: str) -> OfferRequest:
    """What a leader asks when it has been told of the tasks up to `after`, and there are more."""
    return OfferRequest(
        member_id=joined.member_id,
        instance_id=terms.instance_id,
        generation_id=joined.generation_id,
        after=after,
    )


def sync_request(
    terms: Terms, joined: JoinResponse, assignments: tuple[MemberAssignment, ...]
) -> SyncRequest:
    """The sync that follows a join; only a leader has `assignments`."""
    return SyncRequest(
        member_id=joined.member_id,
        instance_id=terms.instance_id,
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=assignments,
    )


def heartbeat_request(terms: Terms, identity: Identity, tasks_revision: int, told: Told) -> HeartbeatRequest:
    """A heartbeat that may be held; `tasks_revision` and `told` are what was heard last."""
    return HeartbeatRequest(
        member_id=identity.member_id,
        instance_id=terms.instance_id,
        generation_id=identity.generation,
        wait_ms=terms.wait_ms,
        tasks_revision=tasks_revision,
        check=told.check,
        quarantine=told.quarantine,
    )


def leave_request(identity: Identity, farewell: Quit, *, stopped: bool) -> LeaveRequest:
    """The leave of a dynamic member; `stopped` says whether no query of it runs any more."""
    leaver = Leaver(
        identity.member_id,
        reason=farewell.message,
        engine=farewell.engine,
        stopped=stopped,
        out_of_memory=farewell.out_of_memory,
    )
    return LeaveRequest(members=(leaver,))


def assignment_in(synced: SyncResponse) -> TaskAssignment:
    """What a member is given; nothing by an assignment that is null or of another form."""
    value = decode_opaque(synced.assignment)
    try:
        return msgspec.convert(value, TaskAssignment)
    except msgspec.ValidationError:
        return TaskAssignment()
