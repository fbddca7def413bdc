"""What the leader of a sparkherd group has decided, read from the members' assignments (protocol §5).

Those of groups of other types are passed on unread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from assignors.eligibility import MAX_WHY_LENGTH
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import decode_opaque
from protocol.messages.membership import MemberAssignment
from protocol.worker_metadata import PROTOCOL_TYPE, TaskAssignment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from manager.core.group import Group
    from manager.core.task_registry import TaskRegistry

NOTHING = TaskAssignment()
TASK, REVISION = attrgetter("task"), attrgetter("revision")
MOST_FAULTS: Final = 20
"""Of an assignment, that are told one by one; there may be one for each task."""


@dataclass(slots=True)
class Placement:
    """Task to member, and why which tasks are nobody's; `faults` says what is wrong with it.

    `shares` are the tasks of those members that are given nothing else, none of them unknown or given twice.
    `anew` has what is read of those who are given anything but what they had, word for word. `revisions` are
    the latest ones of what each member is given, `to_come` is how many tasks are to move to which members
    later.
    """

    assigned: dict[str, str] = field(default_factory=dict)
    shares: dict[str, tuple[str, ...]] = field(default_factory=dict)
    anew: dict[str, Sequence[str]] = field(default_factory=dict)
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
    group.tasks.shares = placement.shares
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
    kept = {name: registry.shares[name] for name, entry in latest.items() if _is_kept(group, entry)}
    given = {name: _given(e, placement.faults) for name, e in latest.items() if name not in kept}
    if not _place_all(placement, kept, given, registry):
        placement.assigned, placement.shares = {}, {}
        given |= {name: _given(latest[name], placement.faults) for name in kept}
        for name, each in given.items():
            _place(placement, each.tasks, name, registry)
    for name, each in given.items():
        placement.anew[name] = each.tasks
        _note_the_rest(placement, name, each, registry)
    return placement


def _is_kept(group: Group, entry: MemberAssignment) -> bool:
    """Whether a member is given what it has, word for word: most are, and so need not be read again."""
    stored = group.members[entry.member_id].row.assignment
    return entry.member_id in group.tasks.shares and stored == entry.assignment


def _place_all(
    placement: Placement,
    kept: Mapping[str, tuple[str, ...]],
    given: Mapping[str, TaskAssignment],
    registry: TaskRegistry,
) -> bool:
    """Place every task as `_place` does, if none is unknown or given twice; returns whether that is so.

    It nearly always is, and there may be a hundred thousand, while which nobody else is answered. Of what is
    `kept` the revisions are known to whom they concern.
    """
    find = registry.definitions.__getitem__
    placement.shares |= kept
    placement.assigned = assigned = _assigned_still(kept, registry)
    try:
        for name, each in given.items():
            rows = [*map(find, each.tasks)]
            placement.shares[name] = tuple(map(TASK, rows))
            placement.revisions[name] = max(map(REVISION, rows), default=0)
    except KeyError:
        return False
    for name in given:
        assigned.update(zip(placement.shares[name], repeat(name)))
    return len(assigned) == sum(map(len, placement.shares.values()))


def _assigned_still(kept: Mapping[str, tuple[str, ...]], registry: TaskRegistry) -> dict[str, str]:
    """Of the present assignment what those members have that keep it; a copy of all is soon made.

    It is not gone by where somebody has more than a share tells of.
    """
    shares = registry.shares
    others = shares.keys() - kept.keys()
    if len(others) > len(kept) or len(registry.assigned) != sum(map(len, shares.values())):
        return dict(chain.from_iterable(zip(tasks, repeat(name)) for name, tasks in kept.items()))
    assigned = registry.assigned.copy()
    for name in others:
        for task in shares[name]:
            del assigned[task]
    return assigned


def _note_the_rest(placement: Placement, name: str, given: TaskAssignment, registry: TaskRegistry) -> None:
    """What is said beside the tasks; whoever is told more than these is read anew each time."""
    if given.more is not msgspec.UNSET:
        placement.to_come[name] = given.more
        placement.shares.pop(name, None)
    if given.left_out:
        placement.shares.pop(name, None)
        placement.left_out |= {
            task: why[:MAX_WHY_LENGTH]
            for task, why in given.left_out.items()
            if task in registry.definitions or task in registry.offered
        }


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
