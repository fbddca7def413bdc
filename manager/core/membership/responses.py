"""Answers that more than one rule gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.tasks import lost_workers, probation
from protocol.messages.membership import JoinedMember, JoinResponse, SyncResponse
from protocol.messages.tasks import OfferedTask
from protocol.task_metrics import figure
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member


def join_response(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinResponse:
    """What a member learns of the present generation; the leader learns of all members and tasks."""
    leads = group.is_leader(member)
    return JoinResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.header.protocol_name,
        leader_id=group.leader_id or "",
        member_id=member.id,
        skip_assignment=skip_assignment,
        members=_roster(group) if leads else (),
        tasks=_offer(group) if leads and group.protocol_type == PROTOCOL_TYPE else msgspec.UNSET,
    )


def sync_response(group: Group, member: Member) -> SyncResponse:
    """The stored assignment of `member`."""
    return SyncResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.header.protocol_name,
        assignment=member.row.assignment,
    )


def _roster(group: Group) -> tuple[JoinedMember, ...]:
    chosen = group.header.protocol_name
    return tuple(
        JoinedMember(
            m.id, m.row.instance_id, m.metadata_for(chosen), draining=m.row.draining or msgspec.UNSET
        )
        for m in group.members.values()
    )


def _load(group: Group, task: str) -> float | None:
    """How much work its worker says it is, None while nobody has measured it."""
    progress = group.tasks.progress.get(task)
    return figure(progress.metrics, "load") if progress is not None else None


def _offer(group: Group) -> tuple[OfferedTask, ...]:
    return tuple(
        OfferedTask(
            task=row.task,
            weight=row.weight,
            worker=row.worker,
            labels=row.labels,
            load=_load(group, row.task),
            returns_to=member_id or msgspec.UNSET,
            suspect=probation.is_suspect(group, row.task) or msgspec.UNSET,
            needs=row.needs or msgspec.UNSET,
            exclusive=row.exclusive or row.task == group.tasks.heap.apart or msgspec.UNSET,
        )
        for row, member_id in lost_workers.offers(group)
    )
