"""Tasks for admins (protocol §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web

from definition.resets import read_offsets, refused_offsets
from manager.core.commands import (
    CreateTask,
    DeleteTask,
    GetTask,
    GetTaskAlarms,
    GetTaskHistory,
    GetTaskStatus,
    PutTask,
    PutTaskResponse,
    ResetTask,
    RestartTask,
    SetTarget,
)
from manager.http.definition_bodies import problems_of, read_definition
from manager.http.endpoint import ACCEPTED, CREATED, NOT_MODIFIED, OK, Endpoint
from manager.http.endpoints.task_lists import NO_GROUP, TASKS, UNSTORED
from manager.http.front.replying import reply
from protocol.errors import ErrorCode, Failure
from protocol.etags import Conditions, etag_of
from protocol.messages.alarms import TaskAlarmsResponse
from protocol.messages.history import TaskHistoryResponse
from protocol.messages.tasks import (
    CreateTaskRequest,
    PutTaskRequest,
    ResetTaskRequest,
    ResetTaskResponse,
    TaskResponse,
    TaskStatusResponse,
    ValidateTaskRequest,
    ValidateTaskResponse,
)
from protocol.roles import Role
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, CallHandler, Plain
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.base import Request

    _Command = Callable[[str], Request]

TASK = f"{TASKS}/{{task}}"
NO_HEADERS: Final[dict[str, str]] = {}
NO_TASK = (*NO_GROUP, ErrorCode.UNKNOWN_TASK)
NOT_MOVABLE = (*NO_TASK, ErrorCode.TASK_UNDER_TRANSFER)


class TaskHandlers:
    """The admin endpoints of a task; those of a group's list are in `manager.http.endpoints.task_lists`."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """All about one task, and /v1/tasks/validate."""
        return [*self._reading(), *self._changing(), *self._steering()]

    def _reading(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                TASK,
                "getTask",
                "A task with its definition and status",
                self.show,
                role=Role.VIEWER,
                asks=Conditions,
                response=TaskResponse,
                success=(OK, NOT_MODIFIED),
                sends=("ETag",),
                errors=(*NO_TASK, ErrorCode.PRECONDITION_FAILED),
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
                "The last hour of a task in figures, and its history",
                self._about(lambda name: GetTaskHistory(task=name)),
                role=Role.VIEWER,
                response=TaskHistoryResponse,
                errors=NO_TASK,
            ),
            Endpoint(
                "GET",
                f"{TASK}/alarms",
                "getTaskAlarms",
                "The rules of alarms that count for a task, with their present values",
                self._about(lambda name: GetTaskAlarms(task=name)),
                role=Role.VIEWER,
                response=TaskAlarmsResponse,
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
                sends=("ETag",),
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
                asks=Conditions,
                response=TaskResponse,
                success=(OK, CREATED),
                sends=("ETag",),
                errors=(
                    ErrorCode.PRECONDITION_FAILED,
                    ErrorCode.TASK_UNDER_TRANSFER,
                    ErrorCode.TASK_TRANSFERRED,
                ),
            ),
            Endpoint(
                "DELETE",
                TASK,
                "deleteTask",
                "Forget a task; its token goes on counting",
                self.delete,
                role=Role.ADMIN,
                asks=Conditions,
                errors=(*NOT_MOVABLE, ErrorCode.PRECONDITION_FAILED),
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
                errors=(*NOT_MOVABLE, ErrorCode.REBALANCE_IN_PROGRESS),
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
            errors=NOT_MOVABLE,
        )

    def _about(self, command: _Command) -> CallHandler:
        async def ask(call: Plain) -> Outcome:
            return await self._runtime.ask(call.group, command(call.task))

        return ask

    async def create(self, call: Call[CreateTaskRequest, None]) -> web.Response:
        """A new task, or TASK_EXISTS."""
        body = call.body
        definition = await read_definition(body.definition)
        command = CreateTask(task=body.task, definition=definition, target=body.target)
        outcome = await self._runtime.ask(call.group, command)
        return _with_etag(outcome, CREATED, _location(call.group, body.task))

    async def show(self, call: Call[None, Conditions]) -> Outcome | web.Response:
        """One task; nothing of it for whoever has it as it is."""
        outcome = await self._runtime.ask(call.group, GetTask(task=call.task))
        if not isinstance(outcome, TaskResponse):
            return outcome
        etag = etag_of(outcome.definition, outcome.target)
        if call.asked.is_other(etag):
            message = "If-Match: the task has been changed since"
            return Failure(ErrorCode.PRECONDITION_FAILED, message, {"etag": etag})
        if call.asked.is_same(etag):
            return web.Response(status=NOT_MODIFIED, headers={"ETag": etag, **UNSTORED})
        return _with_etag(outcome, OK)

    async def delete(self, call: Call[None, Conditions]) -> Outcome:
        """Forget a task."""
        return await self._runtime.ask(call.group, DeleteTask(task=call.task, conditions=call.asked))

    async def put(self, call: Call[PutTaskRequest, Conditions]) -> Outcome | web.Response:
        """Create or replace: 201 or 200."""
        definition = await read_definition(call.body.definition)
        command = PutTask(
            task=call.task, definition=definition, target=call.body.target, conditions=call.asked
        )
        outcome = await self._runtime.ask(call.group, command)
        if not isinstance(outcome, PutTaskResponse):
            return outcome
        if not outcome.created:
            return _with_etag(outcome.view, OK)
        return _with_etag(outcome.view, CREATED, _location(call.group, call.task))

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


def _with_etag(outcome: Outcome, status: int, headers: Mapping[str, str] = NO_HEADERS) -> web.Response:
    if not isinstance(outcome, TaskResponse):
        return reply(outcome, status, headers)
    etag = etag_of(outcome.definition, outcome.target)
    return reply(outcome, status, {"ETag": etag, **UNSTORED, **headers})


def _location(group: str, task: str) -> dict[str, str]:
    return {"Location": f"/v1/groups/{group}/tasks/{task}"}
