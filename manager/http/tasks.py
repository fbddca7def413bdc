"""Tasks for admins (PROTOCOL.md §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from manager.core.commands import (
    CreateTask,
    DeleteTask,
    GetTask,
    GetTaskHistory,
    GetTaskStatus,
    ListTasks,
    PutTask,
    PutTaskResponse,
    ResetTask,
    RestartTask,
    SetTarget,
)
from manager.http.definitions import problems_of, read_definition
from manager.http.reading import body_of, group_of
from manager.http.replying import reply
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import (
    CreateTaskRequest,
    PutTaskRequest,
    ResetTaskRequest,
    ValidateTaskRequest,
    ValidateTaskResponse,
)
from protocol.names import is_legal_name
from protocol.resets import read_offsets, refused_offsets
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.http.replying import Handler
    from manager.runtime.runtime import Runtime
    from protocol.messages.base import Request

    _Command = Callable[[str], Request]

CREATED = 201
ACCEPTED = 202

_create_decoder = msgspec.json.Decoder(CreateTaskRequest)
_put_decoder = msgspec.json.Decoder(PutTaskRequest)
_reset_decoder = msgspec.json.Decoder(ResetTaskRequest)
_validate_decoder = msgspec.json.Decoder(ValidateTaskRequest)


class TaskHandlers:
    """The admin endpoints of tasks."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[web.RouteDef]:
        """Everything below /v1/groups/{group}/tasks, and /v1/tasks/validate."""
        tasks = "/v1/groups/{group:[^/]*}/tasks"
        task = f"{tasks}/{{task}}"
        return [
            web.post("/v1/tasks/validate", self.validate),
            web.get(tasks, self.list_tasks),
            web.post(tasks, self.create),
            web.get(task, self._show(lambda name: GetTask(task=name))),
            web.get(f"{task}/status", self._show(lambda name: GetTaskStatus(task=name))),
            web.get(f"{task}/history", self._show(lambda name: GetTaskHistory(task=name))),
            web.put(task, self.put),
            web.delete(task, self._show(lambda name: DeleteTask(task=name))),
            web.put(f"{task}/pause", self._steer(lambda name: SetTarget(task=name, target=Target.PAUSED))),
            web.put(f"{task}/resume", self._steer(lambda name: SetTarget(task=name, target=Target.RUNNING))),
            web.put(f"{task}/stop", self._steer(lambda name: SetTarget(task=name, target=Target.STOPPED))),
            web.post(f"{task}/restart", self._steer(lambda name: RestartTask(task=name))),
            web.post(f"{task}/reset", self.reset),
        ]

    async def list_tasks(self, request: web.Request) -> web.Response:
        """All tasks of a group with their status."""
        return reply(await self._runtime.ask(group_of(request), ListTasks()))

    async def create(self, request: web.Request) -> web.Response:
        """A new task, or TASK_EXISTS."""
        group = group_of(request)
        body = await body_of(request, _create_decoder)
        definition = await read_definition(body.definition)
        command = CreateTask(task=body.task, definition=definition, target=body.target)
        return reply(
            await self._runtime.ask(group, command),
            CREATED,
            {"Location": f"/v1/groups/{group}/tasks/{body.task}"},
        )

    async def put(self, request: web.Request) -> web.Response:
        """Create or replace: 201 or 200."""
        group, task = group_of(request), _task_of(request)
        body = await body_of(request, _put_decoder)
        definition = await read_definition(body.definition)
        outcome = await self._runtime.ask(
            group, PutTask(task=task, definition=definition, target=body.target)
        )
        if not isinstance(outcome, PutTaskResponse):
            return reply(outcome)
        location = {"Location": f"/v1/groups/{group}/tasks/{task}"}
        return reply(outcome.view, CREATED, location) if outcome.created else reply(outcome.view)

    async def reset(self, request: web.Request) -> web.Response:
        """Start a stopped task anew; without a body, from the earliest offsets."""
        group, task = group_of(request), _task_of(request)
        body = await body_of(request, _reset_decoder) if request.can_read_body else ResetTaskRequest()
        offsets, problems = read_offsets(body.offsets)
        if problems:
            raise refused_offsets(problems)
        return reply(await self._runtime.ask(group, ResetTask(task=task, offsets=offsets)))

    async def validate(self, request: web.Request) -> web.Response:
        """Every problem of a definition; creates nothing."""
        body = await body_of(request, _validate_decoder)
        return reply(ValidateTaskResponse(problems=await problems_of(body.definition)))

    def _show(self, command: _Command) -> Handler:
        async def show(request: web.Request) -> web.Response:
            return reply(await self._runtime.ask(group_of(request), command(_task_of(request))))

        return show

    def _steer(self, command: _Command) -> Handler:
        async def steer(request: web.Request) -> web.Response:
            return reply(await self._runtime.ask(group_of(request), command(_task_of(request))), ACCEPTED)

        return steer


def _task_of(request: web.Request) -> str:
    name = request.match_info["task"]
    if not is_legal_name(name):
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            "task: a task's name is 1 to 249 characters of [A-Za-z0-9._-], not `.` or `..`",
        )
    return name
