"""The list of a group's tasks: shown, and changed as a whole (protocol §5)."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import msgspec

from definition.reading import MOST_PROBLEMS
from manager.core.commands import ListTasks, NewDefinition, PutTask, PutTasks
from manager.core.tasks.task_lists import refused_list
from manager.http.definition_bodies import read_definitions
from manager.http.endpoint import OK, Endpoint
from manager.http.front.replying import reply
from manager.http.task_stream import AT_ONCE, stream_tasks
from protocol.errors import ErrorCode, RefusedError
from protocol.etags import ALWAYS, Conditions
from protocol.messages.tasks import (
    Problem,
    PutTasksRequest,
    PutTasksResponse,
    TaskListQuery,
    TaskListResponse,
)
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

    from manager.core.turn import Outcome
    from manager.http.endpoint import Call
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.tasks import TaskToPut

TASKS = "/v1/groups/{group}/tasks"
UNSTORED: Final = {"Cache-Control": "no-store"}
"""A tag is of what can be changed; a browser that kept an answer by it would show an old status."""
NO_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND,)
MOST_TASKS = 20_000
"""Named in one request: it is one turn of the event loop, a second long for so many; a lease has three."""


class TaskListHandlers:
    """The admin endpoints of a group's list of tasks."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """What /v1/groups/{group}/tasks takes as a whole."""
        return [
            Endpoint(
                "GET",
                TASKS,
                "listTasks",
                "All tasks of a group with their status",
                self.show,
                role=Role.VIEWER,
                asks=TaskListQuery,
                response=TaskListResponse,
                sends=("ETag",),
                errors=NO_GROUP,
            ),
            Endpoint(
                "PUT",
                TASKS,
                "putTasks",
                "Create, replace and forget several tasks, all of them or none",
                self.put,
                role=Role.ADMIN,
                body=PutTasksRequest,
                asks=Conditions,
                response=PutTasksResponse,
                sends=("ETag",),
                errors=(
                    ErrorCode.PRECONDITION_FAILED,
                    ErrorCode.TASK_UNDER_TRANSFER,
                    ErrorCode.TASK_TRANSFERRED,
                ),
            ),
        ]

    async def show(self, call: Call[None, TaskListQuery]) -> Outcome | web.StreamResponse:
        """All tasks of a group with their status, or those that are asked for; the tag is of all of them."""
        asked = call.asked
        command = ListTasks(
            state=asked.state.upper() if asked.state else None,
            target=asked.target.upper() if asked.target else None,
            owner=asked.owner or None,
            after=asked.after,
            limit=asked.limit or AT_ONCE,
        )
        outcome = await self._runtime.ask(call.group, command)
        if not isinstance(outcome, TaskListResponse) or outcome.etag is None:
            return outcome
        headers = {"ETag": outcome.etag, **UNSTORED}
        if asked.limit is not None or outcome.next is None:
            return reply(outcome, OK, headers)
        return await stream_tasks(call.request, outcome, headers, partial(self._after, call.group, command))

    async def _after(self, group: str, command: ListTasks, after: str) -> Outcome:
        await asyncio.sleep(0)  # heartbeats come in between
        return await self._runtime.ask(group, msgspec.structs.replace(command, after=after))

    async def put(self, call: Call[PutTasksRequest, Conditions]) -> Outcome | web.Response:
        """Several tasks in one transaction."""
        outcome = await self._runtime.ask(call.group, await read_list(call.body, call.asked))
        if not isinstance(outcome, PutTasksResponse) or outcome.etag is None:
            return outcome
        return reply(outcome, OK, {"ETag": outcome.etag, **UNSTORED})


async def read_list(body: PutTasksRequest, conditions: Conditions = ALWAYS) -> PutTasks:
    """The command that `body` stands for, read as a whole: it is all in order, or every problem is told.

    `conditions` are of the whole list.

    Raises:
        RefusedError: INVALID_REQUEST with the first `MOST_PROBLEMS` problems, each with its path in the body.
    """
    named = len(body.tasks) + len(body.delete)
    if named > MOST_TASKS:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"tasks, delete: {named} tasks are named, one request takes {MOST_TASKS} at most",
        )
    read = await read_definitions([each.definition for each in body.tasks])
    problems = tuple(islice(chain(_of_names(body), _of_definitions(read)), MOST_PROBLEMS + 1))
    if problems:
        raise refused_list(ErrorCode.INVALID_REQUEST, _first(problems))
    puts = [
        _command(each, definition)
        for each, definition in zip(body.tasks, read, strict=True)
        if isinstance(definition, NewDefinition)
    ]
    return PutTasks(
        tasks=tuple(puts), delete=body.delete, validate_only=body.validate_only, conditions=conditions
    )


def _first(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    if len(problems) <= MOST_PROBLEMS:
        return problems
    return (*problems[:MOST_PROBLEMS], Problem("tasks", f"have more problems than these {MOST_PROBLEMS}"))


def _command(each: TaskToPut, definition: NewDefinition) -> PutTask:
    conditions = Conditions(if_match=each.if_match, if_none_match=each.if_none_match)
    return PutTask(task=each.task, definition=definition, target=each.target, conditions=conditions)


def _of_names(body: PutTasksRequest) -> Iterator[Problem]:
    """A task can be asked for once only: nobody could say which of two is meant."""
    named: set[str] = set()
    for place, name in [
        *((f"tasks[{position}].task", each.task) for position, each in enumerate(body.tasks)),
        *((f"delete[{position}]", name) for position, name in enumerate(body.delete)),
    ]:
        if name in named:
            yield Problem(place, f"{name} is named already")
        named.add(name)


def _of_definitions(read: Sequence[NewDefinition | tuple[Problem, ...]]) -> Iterator[Problem]:
    for position, problems in enumerate(read):
        for each in problems if isinstance(problems, tuple) else ():
            path = ".".join(filter(None, (f"tasks[{position}].definition", each.path)))
            yield Problem(path, each.message)
