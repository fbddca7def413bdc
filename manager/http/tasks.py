"""Tasks for admins (PROTOCOL.md §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from manager.http.endpoints import ACCEPTED, CREATED, OK, Endpoint
from manager.http.replying import reply
from protocol.errors import ErrorCode
from protocol.messages.history import TaskHistoryResponse
from protocol.messages.tasks import (
    CreateTaskRequest,
    PutTaskRequest,
    ResetTaskRequest,
    ResetTaskResponse,
    TaskListResponse,
    TaskResponse,
    TaskStatusResponse,
    ValidateTaskRequest,
    ValidateTaskResponse,
)
from protocol.resets import read_offsets, refused_offsets
from protocol.roles import Role
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from manager.core.turn import Outcome
    from manager.http.endpoints import Call, CallHandler, Plain
    from manager.runtime.runtime import Runtime
    from protocol.messages.base import Request

    _Command = Callable[[str], Request]

TASKS = "/v1/groups/{group}/tasks"
TASK = f"{TASKS}/{{task}}"
NO_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND,)
NO_TASK = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TASK)


class TaskHandlers:
    """The admin endpoints of tasks."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """Everything below /v1/groups/{group}/tasks, and /v1/tasks/validate."""
        return [*self._reading(), *self._changing(), *self._steering()]

    def _reading(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                TASKS,
                "listTasks",
                "All tasks of a group with their status",
                self.list_tasks,
                role=Role.VIEWER,
                response=TaskListResponse,
                errors=NO_GROUP,
            ),
            Endpoint(
                "GET",
                TASK,
                "getTask",
                "A task with its definition and status",
                self._about(lambda name: GetTask(task=name)),
                role=Role.VIEWER,
                response=TaskResponse,
                errors=NO_TASK,
            ),
            Endpoint(
                "GET",
                f"{TASK}/status",
                "getTaskStatus",
                "How a task is doing",
                self._about(lambda name: GetTaskStatus(task=name)),
                role=Role.VIEWER,
                response=TaskStatusResponse,
                errors=NO_TASK,
            ),
            Endpoint(
                "GET",
                f"{TASK}/history",
                "getTaskHistory",
                "The last hour of a task in figures, and its story",
                self._about(lambda name: GetTaskHistory(task=name)),
                role=Role.VIEWER,
                response=TaskHistoryResponse,
                errors=NO_TASK,
            ),
            Endpoint(
                "POST",
                "/v1/tasks/validate",
                "validateTask",
                "Every problem of a definition; creates nothing",
                self.validate,
                role=Role.VIEWER,
                any_group=True,
                body=ValidateTaskRequest,
                response=ValidateTaskResponse,
            ),
        ]

    def _changing(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                TASKS,
                "createTask",
                "Add a task, and the group if need be",
                self.create,
                role=Role.ADMIN,
                body=CreateTaskRequest,
                response=TaskResponse,
                success=(CREATED,),
                errors=(ErrorCode.TASK_EXISTS,),
            ),
            Endpoint(
                "PUT",
                TASK,
                "putTask",
                "Create a task or replace its definition",
                self.put,
                role=Role.ADMIN,
                body=PutTaskRequest,
                response=TaskResponse,
                success=(OK, CREATED),
            ),
            Endpoint(
                "DELETE",
                TASK,
                "deleteTask",
                "Forget a task; its token goes on counting",
                self._about(lambda name: DeleteTask(task=name)),
                role=Role.ADMIN,
                errors=NO_TASK,
            ),
            Endpoint(
                "POST",
                f"{TASK}/reset",
                "resetTask",
                "Have a stopped task begin anew, from given or the earliest offsets",
                self.reset,
                role=Role.ADMIN,
                body=ResetTaskRequest,
                body_optional=True,
                response=ResetTaskResponse,
                errors=(*NO_TASK, ErrorCode.REBALANCE_IN_PROGRESS),
            ),
        ]

    def _steering(self) -> list[Endpoint]:
        return [
            self._steer(
                "PUT", "pause", "Stop the query and keep its place", lambda name: _target(name, Target.PAUSED)
            ),
            self._steer("PUT", "resume", "Have the task run", lambda name: _target(name, Target.RUNNING)),
            self._steer(
                "PUT",
                "stop",
                "Stop the query and take the task from its worker",
                lambda name: _target(name, Target.STOPPED),
            ),
            self._steer(
                "POST",
                "restart",
                "Start the query anew where it is",
                lambda name: RestartTask(task=name),
            ),
        ]

    def _steer(self, method: str, verb: str, summary: str, command: _Command) -> Endpoint:
        return Endpoint(
            method,
            f"{TASK}/{verb}",
            f"{verb}Task",
            summary,
            self._about(command),
            role=Role.OPERATOR,
            response=TaskStatusResponse,
            success=(ACCEPTED,),
            errors=NO_TASK,
        )

    def _about(self, command: _Command) -> CallHandler:
        async def ask(call: Plain) -> Outcome:
            return await self._runtime.ask(call.group, command(call.task))

        return ask

    async def list_tasks(self, call: Plain) -> Outcome:
        """All tasks of a group with their status."""
        return await self._runtime.ask(call.group, ListTasks())

    async def create(self, call: Call[CreateTaskRequest, None]) -> web.Response:
        """A new task, or TASK_EXISTS."""
        body = call.body
        definition = await read_definition(body.definition)
        command = CreateTask(task=body.task, definition=definition, target=body.target)
        outcome = await self._runtime.ask(call.group, command)
        return reply(outcome, CREATED, _location(call.group, body.task))

    async def put(self, call: Call[PutTaskRequest, None]) -> Outcome | web.Response:
        """Create or replace: 201 or 200."""
        definition = await read_definition(call.body.definition)
        command = PutTask(task=call.task, definition=definition, target=call.body.target)
        outcome = await self._runtime.ask(call.group, command)
        if not isinstance(outcome, PutTaskResponse):
            return outcome
        if not outcome.created:
            return outcome.view
        return reply(outcome.view, CREATED, _location(call.group, call.task))

    async def reset(self, call: Call[ResetTaskRequest, None]) -> Outcome:
        """Start a stopped task anew; without a body, from the earliest offsets."""
        offsets, problems = read_offsets(call.body.offsets)
        if problems:
            raise refused_offsets(problems)
        return await self._runtime.ask(call.group, ResetTask(task=call.task, offsets=offsets))

    async def validate(self, call: Call[ValidateTaskRequest, None]) -> Outcome:
        """Every problem of a definition; creates nothing."""
        return ValidateTaskResponse(problems=await problems_of(call.body.definition))


def _target(task: str, target: Target) -> SetTarget:
    return SetTarget(task=task, target=target)


def _location(group: str, task: str) -> dict[str, str]:
    return {"Location": f"/v1/groups/{group}/tasks/{task}"}
