"""What the leader of a sparkherd group has decided, read from the members' assignments (protocol §5).

Those of groups of other types are passed on unread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from assignors.eligibility import MAX_WHY_LENGTH
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import decode_opaque
from protocol.messages.membership import MemberAssignment
from protocol.worker_metadata import PROTOCOL_TYPE, TaskAssignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.group import Group
    from manager.core.task_registry import TaskRegistry

NOTHING = TaskAssignment()
MOST_FAULTS: Final = 20
"""Of an assignment, that are told one by one; there may be one for each task."""


@dataclass(slots=True)
class Placement:
    """Task to member, and why which tasks are nobody's; `faults` says what is wrong with it.

    `revisions` are the latest ones of what each member is given, `to_come` is how many tasks are to move to
    which members later.
    """

    assigned: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    to_come: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def read(group: Group, entries: Iterable[MemberAssignment]) -> Placement:
    """The leader's list; entries for strangers are ignored, and of two for one member the last one counts.

    Raises:
        RefusedError: INVALID_ASSIGNMENT with the first faults: an unknown task, one twice, another form.
    """
    placement = _read(group, entries)
    if placement.faults:
        told = [fault[:MAX_WHY_LENGTH] for fault in placement.faults[:MOST_FAULTS]]
        rest = len(placement.faults) - len(told)
        raise RefusedError(
            ErrorCode.INVALID_ASSIGNMENT, "; ".join([*told, f"and {rest} more"] if rest else told)
        )
    return placement


def on_load(group: Group) -> None:
    """Follow what the members were given when the group was stored; tasks may be gone since."""
    entries = [MemberAssignment(member.id, member.row.assignment) for member in group.members.values()]
    follow(group, _read(group, entries))


def follow(group: Group, placement: Placement) -> None:
    """Make `placement` the present one; whatever has changed of a task concerns its member from now on."""
    group.tasks.assigned = placement.assigned
    group.tasks.left_out = placement.left_out
    group.tasks.is_short_of_room = None
    group.tasks.to_come = placement.to_come
    for member_id, revision in placement.revisions.items():
        member = group.members[member_id]
        member.concern_revision = max(member.concern_revision, revision)


def _read(group: Group, entries: Iterable[MemberAssignment]) -> Placement:
    placement = Placement()
    if group.protocol_type != PROTOCOL_TYPE:
        return placement
    registry = group.tasks
    latest = {entry.member_id: entry for entry in entries if entry.member_id in group.members}
    for entry in latest.values():
        given = _given(entry, placement.faults)
        _place(placement, given.tasks, entry.member_id, registry)
        if given.more is not msgspec.UNSET:
            placement.to_come[entry.member_id] = given.more
        placement.left_out |= {
            task: why[:MAX_WHY_LENGTH]
            for task, why in (given.left_out or {}).items()
            if task in registry.definitions or task in registry.offered
        }
    return placement


def _given(entry: MemberAssignment, faults: list[str]) -> TaskAssignment:
    try:
        value = decode_opaque(entry.assignment)
        return NOTHING if value is None else msgspec.convert(value, TaskAssignment)
    except msgspec.ValidationError as error:
        faults.append(f"the assignment of {entry.member_id}: {error}")
        return NOTHING


def _place(placement: Placement, tasks: Iterable[str], member_id: str, registry: TaskRegistry) -> None:
    """A task that the leader was told of may be gone since."""
    definitions, assigned = registry.definitions, placement.assigned
    revisions = [0]
    for task in tasks:
        row = definitions.get(task)
        if row is None and task not in registry.offered:
            placement.faults.append(f"{task!r} is no task of the group")
        elif task in assigned:
            placement.faults.append(f"{task!r} is given twice")
        else:
            assigned[task] = member_id
            if row is not None:
                revisions.append(row.revision)
    placement.revisions[member_id] = max(revisions)
