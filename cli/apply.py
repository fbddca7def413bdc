"""`sparkherd tasks apply`: bring a group's tasks to what a file says, all of them or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from cli.client import path_of
from cli.task_file import TaskFileError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import (
    Problem,
    PutTaskRequest,
    TaskListResponse,
    TaskResponse,
    TaskView,
    ValidateTaskRequest,
    ValidateTaskResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cli.client import Client
    from cli.task_file import TaskEntry


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one entry, or would become of it."""

    task: str
    action: Literal["created", "changed", "unchanged"]


def check(client: Client, entries: Sequence[TaskEntry]) -> None:
    """Raise `TaskFileError` with every problem the manager sees in any definition."""
    problems = [
        Problem(f"{entry.task}: {problem.path}", problem.message)
        for entry in entries
        for problem in _problems(client, entry)
    ]
    if problems:
        raise TaskFileError(problems)


def plan(client: Client, group: str, entries: Iterable[TaskEntry]) -> list[Applied]:
    """What `apply` would do to each entry."""
    present = _present(client, group)
    return [Applied(entry.task, _action(entry, present)) for entry in entries]


def apply(client: Client, group: str, entries: Iterable[TaskEntry]) -> list[Applied]:
    """Create or change the tasks; `check` comes first. Doing it again changes nothing."""
    planned = {applied.task: applied for applied in plan(client, group, entries)}
    for entry in entries:
        if planned[entry.task].action != "unchanged":
            body = PutTaskRequest(definition=_raw(entry.definition), target=entry.target)
            client.call("PUT", path_of("groups", group, "tasks", entry.task), body, into=TaskResponse)
    return list(planned.values())


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


def _action(entry: TaskEntry, present: Mapping[str, TaskView]) -> Literal["created", "changed", "unchanged"]:
    known = present.get(entry.task)
    if known is None:
        return "created"
    same_target = entry.target is None or entry.target.value == known.target
    same = same_target and msgspec.json.decode(known.definition) == entry.definition
    return "unchanged" if same else "changed"


def _raw(definition: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(definition))
