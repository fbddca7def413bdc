"""Admin requests as the core takes them: path and body in one value, definitions already read."""

from __future__ import annotations

import msgspec

from protocol.etags import ALWAYS, Conditions
from protocol.messages.base import Request, Response
from protocol.messages.tasks import EARLIEST, Offsets, TaskResponse
from protocol.states import Target


class DescribeGroup(Request, frozen=True, kw_only=True):
    """Show the group."""


class DeleteGroup(Request, frozen=True, kw_only=True):
    """Forget the group."""


class StartRebalance(Request, frozen=True, kw_only=True):
    """Bring everybody together anew."""

    reason: str | None = None


class ListRebalances(Request, frozen=True, kw_only=True):
    """Show the group's history, `limit` lines of it."""

    limit: int


class RemoveMember(Request, frozen=True, kw_only=True):
    """Fence a member."""

    member_id: str


class DrainMember(Request, frozen=True, kw_only=True):
    """Move a worker's tasks away and keep new ones off it, or take that back."""

    member_id: str
    draining: bool


class NewDefinition(msgspec.Struct, frozen=True):
    """A checked definition: the document, and what of it the assignor goes by."""

    document: msgspec.Raw
    weight: float
    worker: str | None
    labels: dict[str, str]


class CreateTask(Request, frozen=True, kw_only=True):
    """Add a task."""

    task: str
    definition: NewDefinition
    target: Target


class PutTask(Request, frozen=True, kw_only=True):
    """Add a task or replace its definition; without a target it keeps its own."""

    task: str
    definition: NewDefinition
    target: Target | None = None
    conditions: Conditions = ALWAYS


class PutTaskResponse(Response, frozen=True, kw_only=True):
    """The task as it is now, and whether it is new."""

    created: bool
    view: TaskResponse


class PutTasks(Request, frozen=True, kw_only=True):
    """Several tasks at once, all or none; with `validate_only`, what would become of them.

    `conditions` are of the group's whole list of tasks; each of `tasks` has its own beside.
    """

    tasks: tuple[PutTask, ...]
    delete: tuple[str, ...] = ()
    validate_only: bool = False
    conditions: Conditions = ALWAYS


class DeleteTask(Request, frozen=True, kw_only=True):
    """Forget a task; its token goes on counting."""

    task: str
    conditions: Conditions = ALWAYS


class SetTarget(Request, frozen=True, kw_only=True):
    """Pause, resume or stop a task."""

    task: str
    target: Target


class RestartTask(Request, frozen=True, kw_only=True):
    """Start a task's query anew where it is."""

    task: str


class ResetTask(Request, frozen=True, kw_only=True):
    """Have a stopped task begin anew when it is resumed."""

    task: str
    offsets: Offsets = EARLIEST


class GetTaskHistory(Request, frozen=True, kw_only=True):
    """Show what is remembered of one task."""

    task: str


class ListMoves(Request, frozen=True, kw_only=True):
    """Show which tasks changed hands lately."""


class ListTasks(Request, frozen=True, kw_only=True):
    """Show all tasks of the group."""


class GetTask(Request, frozen=True, kw_only=True):
    """Show one task."""

    task: str


class GetTaskStatus(Request, frozen=True, kw_only=True):
    """Show how one task is doing."""

    task: str
