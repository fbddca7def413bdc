"""`sparkherd groups watch`: a group as it changes. What is new between two looks is a rule without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from cli.client.admin_client import UnreachableError, path_of
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.groups import DescribedMember, DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse, TaskView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cli.client.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group at one moment; `trouble` says why nothing could be seen."""

    group: DescribeGroupResponse | None = None
    members: Mapping[str, DescribedMember] = field(default_factory=dict)
    tasks: Mapping[str, TaskView] = field(default_factory=dict)
    trouble: str | None = None


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is new; `now` is what is known of it, in the names of the API, None if it is gone."""

    kind: str
    name: str
    text: str
    now: dict[str, Any] | None = None


def look(client: AdminClient, group: str) -> GroupSnapshot:
    """Ask the manager; raises `UnreachableError` and `RefusedError`."""
    described = client.get(path_of("groups", group), DescribeGroupResponse)
    tasks = client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
    members = {member.member_id: member for member in described.members}
    return GroupSnapshot(described, members, {task.task: task for task in tasks})


def look_again(client: AdminClient, group: str) -> GroupSnapshot:
    """The group at the next look: what goes wrong now may come right again, so it is shown, not raised."""
    try:
        return look(client, group)
    except UnreachableError as error:
        return GroupSnapshot(trouble=str(error))
    except RefusedError as error:
        if error.failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return GroupSnapshot(trouble=f"there is no group {group} any more")
        return GroupSnapshot(trouble=f"{error.failure.code.name}: {error}")


def changes(before: GroupSnapshot, after: GroupSnapshot) -> list[Change]:
    """What is new; where nothing was seen at one of the two, only that."""
    if after.trouble is not None:
        return [] if after.trouble == before.trouble else [Change("trouble", "", after.trouble)]
    return [*_of_group(before, after), *_of_members(before, after), *_of_tasks(before, after)]


def seen_last(before: GroupSnapshot, after: GroupSnapshot) -> GroupSnapshot:
    """What the next look is compared with: through trouble, what was seen before it."""
    if after.trouble is None:
        return after
    return GroupSnapshot(before.group, before.members, before.tasks, after.trouble)


def _of_group(before: GroupSnapshot, after: GroupSnapshot) -> Iterator[Change]:
    now = _figures(after)
    if before.trouble is not None or now != _figures(before):
        text = (
            f"group {now['state']}, generation {now['generation_id']}, leader {now['leader_id'] or '-'},"
            f" {now['members']} members, {now['tasks']} tasks"
        )
        yield Change("group", now["group"], text, now)


def _figures(snapshot: GroupSnapshot) -> dict[str, Any]:
    if (group := snapshot.group) is None:
        return {}
    names = ("group", "state", "generation_id", "leader_id", "tasks")
    return {name: getattr(group, name) for name in names} | {"members": len(snapshot.members)}


def _of_members(before: GroupSnapshot, after: GroupSnapshot) -> Iterator[Change]:
    for name in sorted(before.members.keys() - after.members.keys()):
        yield Change("member", name, f"member {name} is gone")
    for name, member in after.members.items():
        old = before.members.get(name)
        now = {"member_id": name, "host": member.host, "draining": member.draining}
        if old is None:
            yield Change("member", name, f"member {name} joined from {member.host}", now)
        elif old.draining != member.draining:
            told = "is being drained" if member.draining else "takes tasks again"
            yield Change("member", name, f"member {name} {told}", now)


def _of_tasks(before: GroupSnapshot, after: GroupSnapshot) -> Iterator[Change]:
    for name in sorted(before.tasks.keys() - after.tasks.keys()):
        yield Change("task", name, f"task {name} is deleted")
    for name, task in after.tasks.items():
        old = before.tasks.get(name)
        if old is None or _state(old) != _state(task):
            yield Change("task", name, _sentence(task), _state(task))


def _state(task: TaskView) -> dict[str, Any]:
    """What of a task is worth a line; its batches are not."""
    names = ("task", "state", "target", "owner", "token", "restart_count", "cause")
    return {name: getattr(task, name) for name in names}


def _sentence(task: TaskView) -> str:
    owner = f" on {task.owner}" if task.owner else ""
    target = f", to be {task.target}" if task.target not in {task.state, "RUNNING"} else ""
    cause = f": {task.cause.partition(chr(10))[0]}" if task.cause else ""
    return f"task {task.task} {task.state}{owner}, token {task.token}{target}{cause}"
