"""Offsets: progress that a group keeps with the manager, fenced by its generation (protocol §3.5, §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, scheduling, sessions
from manager.core.stored_rows import OffsetRow
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import NO_GENERATION
from protocol.messages.offsets import CommittedOffset, FetchOffsetsResponse, OffsetErrorsResponse
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from protocol.messages.offsets import (
        CommitOffsetsRequest,
        DeleteOffsetsRequest,
        FetchOffsetsRequest,
        OffsetToCommit,
    )


def commit(turn: Turn, request: CommitOffsetsRequest, parked: Parked) -> None:
    """Store offsets of a member of the present generation, or of anybody while the group is Empty."""
    group = turn.group
    checks.not_dead(group)
    if request.generation_id != NO_GENERATION or group.state is not GroupState.EMPTY:
        _check_committer(turn, request, parked)
    errors = {key: _commit_one(turn, key, entry) for key, entry in request.offsets.items()}
    turn.answer(parked, OffsetErrorsResponse(offsets=errors))


def _check_committer(turn: Turn, request: CommitOffsetsRequest, parked: Parked) -> None:
    group = turn.group
    checks.known(group)
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    if group.state is GroupState.AWAITING_SYNC:
        raise checks.rebalancing(group)
    sessions.request_accepted(turn, member, parked)


def _commit_one(turn: Turn, key: str, entry: OffsetToCommit) -> ErrorCode:
    group = turn.group
    if len(entry.metadata.encode()) > group.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    turn.put(OffsetRow(group=group.name, offset_key=key, offset=entry.offset.copy(), metadata=entry.metadata))
    return ErrorCode.NONE


def fetch(turn: Turn, request: FetchOffsetsRequest, parked: Parked) -> None:
    """Read offsets; what is not known is null."""
    checks.not_dead(turn.group)
    stored = turn.group.offsets
    keys = stored if request.keys is None else request.keys
    turn.answer(parked, FetchOffsetsResponse(offsets={key: _committed(stored.get(key)) for key in keys}))


def _committed(row: OffsetRow | None) -> CommittedOffset:
    return CommittedOffset() if row is None else CommittedOffset(row.offset, row.metadata)


def delete(turn: Turn, request: DeleteOffsetsRequest, parked: Parked) -> None:
    """Forget offsets, unless somebody may be relying on them."""
    group = turn.group
    checks.known(group)
    if group.state is not GroupState.EMPTY:
        raise RefusedError(ErrorCode.NON_EMPTY_GROUP, f"group {group.name} has members")
    for key in request.keys:
        if key in group.offsets:
            turn.drop(group.offsets[key])
    scheduling.begin_retention(turn)
    turn.answer(parked, OffsetErrorsResponse(offsets=dict.fromkeys(request.keys, ErrorCode.NONE)))
