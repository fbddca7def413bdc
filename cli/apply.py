"""`sparkherd tasks apply`: bring a group's tasks to what a file says, all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from cli.client import path_of
from cli.differences import Difference, differences
from cli.task_file import TaskFileError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from protocol.messages.tasks import (
    CreateTaskRequest,
    Problem,
    PutTaskRequest,
    TaskListResponse,
    TaskResponse,
    TaskView,
    ValidateTaskRequest,
    ValidateTaskResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cli.client import Client
    from cli.task_file import TaskEntry
    from protocol.states import Target


Action = Literal["created", "changed", "unchanged", "deleted"]


class Applied(msgspec.Struct, frozen=True):
    """What becomes of one task, and in which places it differs from what is there."""

    task: str
    action: Action
    changes: tuple[Difference, ...] = ()


def check(client: Client, entries: Sequence[TaskEntry]) -> None:
    """Raise `TaskFileError` with every problem the manager sees in any definition."""
    problems = [
        Problem(f"{entry.task}: {problem.path}", problem.message)
        for entry in entries
        for problem in _problems(client, entry)
    ]
    if problems:
        raise TaskFileError(problems)


def plan(client: Client, group: str, entries: Sequence[TaskEntry], *, prune: bool) -> list[Applied]:
    """What is to be done to each entry's task and, to `prune`, to those that no entry names."""
    present = _present(client, group)
    planned = [_planned(entry, present.get(entry.task)) for entry in entries]
    surplus = present.keys() - {entry.task for entry in entries} if prune else set()
    return planned + [Applied(task, "deleted") for task in sorted(surplus)]


def carry_out(
    client: Client, group: str, entries: Sequence[TaskEntry], planned: Iterable[Applied]
) -> Iterator[Applied]:
    """Do what was planned, each as it is asked for; `check` comes first. Doing it again changes nothing."""
    by_name = {entry.task: entry for entry in entries}
    for applied in planned:
        path = path_of("groups", group, "tasks", applied.task)
        if applied.action == "deleted":
            client.call("DELETE", path, into=Response)
        elif applied.action != "unchanged":
            entry = by_name[applied.task]
            body = PutTaskRequest(definition=_raw(entry.definition), target=entry.target)
            client.call("PUT", path, body, into=TaskResponse)
        yield applied


def create(client: Client, group: str, task: str, definition: dict[str, Any], target: Target) -> None:
    """Create one task; raises `RefusedError` if it is there."""
    body = CreateTaskRequest(task=task, definition=_raw(definition), target=target)
    client.call("POST", path_of("groups", group, "tasks"), body, into=TaskResponse)


def _problems(client: Client, entry: TaskEntry) -> tuple[Problem, ...]:
    body = ValidateTaskRequest(definition=_raw(entry.definition))
    return client.call("POST", path_of("tasks", "validate"), body, into=ValidateTaskResponse).problems


def _present(client: Client, group: str) -> dict[str, TaskView]:
    try:
        tasks = client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
    except RefusedError as error:
        if error.failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise
    return {task.task: task for task in tasks}


def _planned(entry: TaskEntry, known: TaskView | None) -> Applied:
    if known is None:
        return Applied(entry.task, "created")
    changes = differences(msgspec.json.decode(known.definition), entry.definition)
    if entry.target is not None and entry.target.value != known.target:
        changes.append(Difference("target", known.target, entry.target.value))
    return Applied(entry.task, "changed" if changes else "unchanged", tuple(changes))


def _raw(definition: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(definition))
