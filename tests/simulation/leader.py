"""How a worker of a history decides when it leads: as the real leader, without its thread and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from assignors.base import Member, Task
from assignors.exclusive import give_own
from assignors.isolation import isolate
from assignors.limits import within_limits
from assignors.pace import Progress, paced
from assignors.sticky import StickyAssignor
from protocol.connectors import NOTHING
from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment
from protocol.worker_metadata import TaskAssignment, read_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.base import Assignment
    from protocol.messages.membership import JoinResponse
    from protocol.worker_metadata import WorkerMetadata


class SimLeader:
    """Deals with `sticky`, and has `at_once` running tasks move to a member at the same time, 0 for any.

    `put_off` is how often it has put some off.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._given: Assignment = {}
        self.put_off = 0

    def assign(self, joined: JoinResponse) -> tuple[MemberAssignment, ...]:
        """What everybody is given, and how many tasks are to move to whom later."""
        metadata = {each.member_id: read_metadata(each.metadata) for each in joined.members}
        members, tasks = _members(joined, metadata), _tasks(joined, metadata)
        if not members:
            return ()
        suspects = {task.task for task in joined.tasks or () if task.suspect is not UNSET}
        plan = give_own(isolate(members, tasks, suspects))
        dealt = within_limits(_stick, plan.members, plan.tasks) if plan.members else {}
        at_once = self._at_once if all(told.paces for told in metadata.values()) else 0
        now = paced(dealt, plan.members, plan.tasks, at_once, _progress(metadata, self._given))
        self._given = plan.complete(now.assignment)
        self.put_off += bool(now.to_come)
        return tuple(
            _told(each, self._given.get(each, ()), now.to_come.get(each, UNSET)) for each in metadata
        )


def _told(member_id: str, tasks: Sequence[str], more: int | UnsetType) -> MemberAssignment:
    return MemberAssignment(member_id, encode_opaque(TaskAssignment(tasks=tuple(tasks), more=more)))


def _stick(members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
    return StickyAssignor().assign(members, tasks, {})


def _members(joined: JoinResponse, metadata: Mapping[str, WorkerMetadata]) -> list[Member]:
    """Whoever is not drained; what is to return to a worker counts as its own."""
    owned = {member: set(told.owned) for member, told in metadata.items()}
    for task in joined.tasks or ():
        if task.returns_to is not UNSET:
            owned[task.returns_to].add(task.task)
    return [
        Member(
            each.member_id,
            each.instance_id,
            owned=frozenset(owned[each.member_id]),
            formats=told.formats,
            max_tasks=told.max_tasks,
        )
        for each, told in zip(joined.members, metadata.values(), strict=True)
        if each.draining is UNSET
    ]


def _tasks(joined: JoinResponse, metadata: Mapping[str, WorkerMetadata]) -> list[Task]:
    tokens = {task: token for told in metadata.values() for task, token in told.owned.items()}
    return [
        Task(
            each.task,
            each.weight,
            each.worker,
            each.labels,
            each.load,
            each.needs or NOTHING,
            each.exclusive is True,
            tokens.get(each.task, 0),
        )
        for each in joined.tasks or ()
    ]


def _progress(metadata: Mapping[str, WorkerMetadata], given: Assignment) -> Progress:
    held = [(token, task, each) for each, told in metadata.items() for task, token in told.owned.items()]
    running = {task: each for _, task, each in sorted(held)}
    return Progress(running, {each: told.starting for each, told in metadata.items()}, given)
