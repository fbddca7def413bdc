"""`sparkherd tasks apply`: bring a group's tasks to what a file says, all of them or none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from cli.client.admin_client import UnreachableError, path_of
from cli.task_files.differences import Difference, differences
from cli.task_files.reader import TaskFileError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import (
    CreateTaskRequest,
    Problem,
    PutTasksRequest,
    PutTasksResponse,
    TaskListResponse,
    TaskResponse,
    TaskToPut,
    TaskView,
    ValidateTaskRequest,
    ValidateTaskResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cli.client.admin_client import AdminClient
    from cli.task_files.reader import TaskEntry
    from protocol.states import Target


_PLACE = re.compile(r"tasks\[(?P<position>\d+)\](?:\.definition)?\.?(?P<rest>.*)")

Action = Literal["created", "changed", "unchanged", "deleted"]


class Applied(msgspec.Struct, frozen=True):
    """What becomes of one task, and in which places it differs from what is there."""

    task: str
    action: Action
    changes: tuple[Difference, ...] = ()


def check(client: AdminClient, entries: Sequence[TaskEntry]) -> None:
    """Raise `TaskFileError` with every problem the manager sees in any definition."""
    problems = [
        Problem(f"{entry.task}: {problem.path}", problem.message)
        for entry in entries
        for problem in _problems(client, entry)
    ]
    if problems:
        raise TaskFileError(problems)


def plan(client: AdminClient, group: str, entries: Sequence[TaskEntry], *, prune: bool) -> list[Applied]:
    """What is to be done to each entry's task and, to `prune`, to those that no entry names."""
    present = _present(client, group)
    planned = [_planned(entry, present.get(entry.task)) for entry in entries]
    surplus = present.keys() - {entry.task for entry in entries} if prune else set()
    return planned + [Applied(task, "deleted") for task in sorted(surplus)]


def carry_out(
    client: AdminClient,
    group: str,
    entries: Sequence[TaskEntry],
    planned: Iterable[Applied],
    *,
    validate_only: bool = False,
) -> list[Applied]:
    """Do what was planned, all of it or nothing, in one request; doing it again changes nothing.

    Args:
        client: of the manager.
        group: whose tasks.
        entries: what they are to be.
        planned: what is to be done about them, the deletions after `entries`.
        validate_only: have it checked only.

    Returns:
        What has become of each, by the manager's word.

    Raises:
        TaskFileError: every problem that the manager sees in any definition; nothing was done.
        RefusedError, UnreachableError: as of any request; says so if it is not known what was done.
    """
    body = PutTasksRequest(
        tasks=tuple(_to_put(entry) for entry in entries),
        delete=tuple(applied.task for applied in planned if applied.action == "deleted"),
        validate_only=validate_only,
    )
    try:
        answer = client.call("PUT", path_of("groups", group, "tasks"), body, into=PutTasksResponse)
    except RefusedError as error:
        raise _told(error, group, body, entries) from None
    except UnreachableError as error:
        if validate_only or not error.was_sent:
            raise
        raise UnreachableError(f"{error}; {_unknown(group)}", was_sent=True) from None
    return [Applied(task.task, task.result) for task in answer.tasks]


def _told(
    error: RefusedError, group: str, body: PutTasksRequest, entries: Sequence[TaskEntry]
) -> RefusedError | TaskFileError:
    """A refusal of the whole list, in words of whoever has the file."""
    failure = error.failure
    if problems := failure.fields.get("problems", ()):
        return TaskFileError([_in_words_of_the_file(each, entries) for each in problems])
    if failure.code is ErrorCode.PAYLOAD_TOO_LARGE:
        return RefusedError(failure.code, _too_large(body, failure.fields.get("limit_bytes")))
    if failure.fields.get("was_sent") and not body.validate_only:
        return RefusedError(failure.code, f"{failure.message}; {_unknown(group)}")
    return error


def _too_large(body: PutTasksRequest, limit: int | None) -> str:
    size = len(msgspec.json.encode(body))
    most = "less" if limit is None else f"{limit:,} at most"
    return (
        f"the {len(body.tasks)} tasks are one request of {size:,} bytes, and the manager takes {most}: start"
        " it with a higher --max-request-bytes, or apply the tasks in several files, each of which comes"
        " true as a whole (without --prune, which deletes what its file does not name)"
    )


def _unknown(group: str) -> str:
    return (
        "it is not known whether the tasks were applied, all of them or none: apply the file again, which"
        f" leaves alone what is so already, or look with `sparkherd tasks list --group {group}`"
    )


def _to_put(entry: TaskEntry) -> TaskToPut:
    return TaskToPut(task=entry.task, definition=_raw(entry.definition), target=entry.target)


def _in_words_of_the_file(problem: Problem, entries: Sequence[TaskEntry]) -> Problem:
    """`tasks[3].definition.sql` is the `sql` of the fourth task."""
    if (place := _PLACE.fullmatch(problem.path)) is None:
        return problem
    name = entries[int(place["position"])].task
    return Problem(f"{name}: {place['rest']}" if place["rest"] else name, problem.message)


def create(client: AdminClient, group: str, task: str, definition: dict[str, Any], target: Target) -> None:
    """Create one task; raises `RefusedError` if it is there."""
    body = CreateTaskRequest(task=task, definition=_raw(definition), target=target)
    client.call("POST", path_of("groups", group, "tasks"), body, into=TaskResponse)


def _problems(client: AdminClient, entry: TaskEntry) -> tuple[Problem, ...]:
    body = ValidateTaskRequest(definition=_raw(entry.definition))
    return client.call("POST", path_of("tasks", "validate"), body, into=ValidateTaskResponse).problems


def _present(client: AdminClient, group: str) -> dict[str, TaskView]:
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
