"""The checks every member request goes through, in the order of protocol §2.

Dead, then instance and member, then generation, then protocol; each raises `RefusedError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, RefusedError
from protocol.etags import ALWAYS, etag_of
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Collection

    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.stored_rows import TaskRow
    from protocol.etags import Conditions

REBALANCING: Final = (GroupState.PREPARING_REBALANCE, GroupState.AWAITING_SYNC)
"""No set: every heartbeat looks here, and an enum's hash is slow."""


def not_dead(group: Group) -> None:
    """A group that is being deleted serves nobody."""
    if group.state is GroupState.DEAD:
        raise RefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {group.name} is being deleted")


def known(group: Group) -> None:
    """The group exists; admin requests and reads ask for that first."""
    not_dead(group)
    if group.is_unknown:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group.name}")


def meets(conditions: Conditions, row: TaskRow | None) -> None:
    """The task is as whoever wants to change it has seen it; `row` is None if there is none."""
    present = etag_of(row.definition, row.target.value) if row is not None else None
    _met(conditions, present, "task", "the task has been changed since")


def list_meets(conditions: Conditions, group: Group) -> None:
    """The group's tasks are as whoever wants to change some of them has seen them."""
    if conditions != ALWAYS:
        _met(conditions, list_tag(group), "group", "the group's tasks have been changed since")


def list_tag(group: Group) -> str | None:
    """The tag of the group's list of tasks; None if there is no such group."""
    if group.is_unknown:
        return None
    return str(group.tasks.tag)


def _met(conditions: Conditions, present: str | None, what: str, changed: str) -> None:
    if conditions.is_other(present):
        why = f"there is no such {what}" if present is None else changed
        raise RefusedError(ErrorCode.PRECONDITION_FAILED, f"If-Match: {why}", etag=present)
    if conditions.is_same(present):
        message = f"If-None-Match: there is such a {what} already"
        raise RefusedError(ErrorCode.PRECONDITION_FAILED, message, etag=present)


def task(group: Group, name: str) -> TaskRow:
    """The task called so.

    Raises:
        RefusedError: GROUP_ID_NOT_FOUND or UNKNOWN_TASK.
    """
    known(group)
    row = group.tasks.definitions.get(name)
    if row is None:
        raise RefusedError(ErrorCode.UNKNOWN_TASK, f"there is no task {name} in group {group.name}")
    return row


def not_moving(group: Group, name: str) -> None:
    """No transfer has the task called so in its hands (protocol §5, Transfers)."""
    transfer = group.transfers.moving.get(name)
    if transfer is not None:
        raise RefusedError(
            ErrorCode.TASK_UNDER_TRANSFER,
            f"task {name} of group {group.name} is under transfer {transfer}; cancel it, or wait for its end",
        )


def movable(group: Group, name: str) -> TaskRow:
    """The task called so, which is to be changed.

    Raises:
        RefusedError: as `task`, or TASK_UNDER_TRANSFER.
    """
    row = task(group, name)
    not_moving(group, name)
    return row


def instance(group: Group, member_id: str, instance_id: str | None) -> None:
    """An instance id speaks for the member it was last given to, and for no other (KIP-345)."""
    if instance_id is None:
        return
    known = group.statics.get(instance_id)
    if known is None:
        raise RefusedError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"no member carries instance_id {instance_id} in group {group.name}"
        )
    if known != member_id:
        raise RefusedError(
            ErrorCode.FENCED_INSTANCE_ID, f"instance_id {instance_id} belongs to another member by now"
        )


def member(group: Group, member_id: str, instance_id: str | None) -> Member:
    """The present member a request speaks for."""
    not_dead(group)
    instance(group, member_id, instance_id)
    found = group.members.get(member_id)
    if found is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member {member_id!r} in group {group.name}")
    return found


def generation(group: Group, generation_id: int) -> None:
    """The caller takes part in the present generation."""
    if generation_id != group.generation:
        raise RefusedError(
            ErrorCode.ILLEGAL_GENERATION,
            f"generation_id {generation_id} is not the present one of group {group.name}, {group.generation}",
        )


def stable(group: Group) -> None:
    """The group is not between assignments."""
    if group.state in REBALANCING:
        raise rebalancing(group)


def rebalancing(group: Group) -> RefusedError:
    """The refusal of whatever has to wait for the next assignment."""
    return RefusedError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.name} is rebalancing")


def protocols(group: Group, protocol_type: str, names: Collection[str], own: Member | None) -> None:
    """A joiner speaks the group's type and shares a protocol with all *other* members (protocol §4)."""
    if not protocol_type or not names:
        raise RefusedError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol_type and protocols must not be empty"
        )
    others = len(group.members) - (own is not None)
    if not group.members:
        return
    if protocol_type != group.protocol_type:
        raise RefusedError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"protocol_type {protocol_type!r} is not that of group {group.name}, {group.protocol_type!r}",
        )
    own_names = own.names if own is not None else frozenset()
    if others and not any(group.votes[name] - (name in own_names) == others for name in names):
        raise RefusedError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"none of the protocols {sorted(names)} is supported by all members of group {group.name}",
        )
