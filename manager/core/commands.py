"""Admin requests as the core takes them: path and body in one value, definitions already read."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from protocol.connectors import NOTHING, Needs
from protocol.errands import ErrandKind
from protocol.etags import ALWAYS, Conditions
from protocol.messages.base import Request, Response
from protocol.messages.checks import Begin
from protocol.messages.quarantine import QuarantineRequest
from protocol.messages.tasks import EARLIEST, Offsets, TaskResponse
from protocol.states import Target


class TaskRequest(Request, frozen=True, kw_only=True):
    """About the task of that name."""

    task: str


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
    """A checked definition: the document, what of it the assignor goes by, and its entry point."""

    document: msgspec.Raw
    weight: float
    worker: str | None
    labels: dict[str, str]
    needs: Needs = NOTHING
    entrypoint: str | None = None
    exclusive: bool = False


class CreateTask(TaskRequest, frozen=True, kw_only=True):
    """Add a task."""

    definition: NewDefinition
    target: Target


class PutTask(TaskRequest, frozen=True, kw_only=True):
    """Add a task or replace its definition; without a target it keeps its own."""

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


class DeleteTask(TaskRequest, frozen=True, kw_only=True):
    """Forget a task; its token goes on counting."""

    conditions: Conditions = ALWAYS


class SetTarget(TaskRequest, frozen=True, kw_only=True):
    """Pause, resume or stop a task."""

    target: Target


class RestartTask(TaskRequest, frozen=True, kw_only=True):
    """Start a task's query anew where it is."""


class ResetTask(TaskRequest, frozen=True, kw_only=True):
    """Have a stopped task begin anew when it is resumed."""

    offsets: Offsets = EARLIEST


class GetTaskHistory(TaskRequest, frozen=True, kw_only=True):
    """Show what is remembered of one task."""


class Errand(Request, frozen=True, kw_only=True):
    """Have a member do something within `timeout_ms`; whoever asks waits for it (protocol §5, Errands)."""

    kind: ClassVar[ErrandKind]

    timeout_ms: int

    @property
    def unheard(self) -> str:
        """What is to be said besides when nobody will hear how it went."""
        return ""


class CheckDefinition(Errand, frozen=True, kw_only=True):
    """Have a worker look at a definition that need not be a task's."""

    kind: ClassVar[ErrandKind] = ErrandKind.CHECK

    definition: NewDefinition
    rows: int
    begin: Begin


class AskQuarantine(Errand, frozen=True, kw_only=True):
    """Have the owner of a task do something with the rows that it has put aside."""

    kind: ClassVar[ErrandKind] = ErrandKind.QUARANTINE

    task: str
    wanted: QuarantineRequest

    @property
    def unheard(self) -> str:
        """As what is wanted has it."""
        return self.wanted.unheard


class ListMoves(Request, frozen=True, kw_only=True):
    """Show which tasks changed hands lately."""


class ListTasks(Request, frozen=True, kw_only=True):
    """Show tasks of the group, by name, as far as they are in that state, have that target and that owner.

    `name_has` is part of the name, in any case of letters. Of more than `limit`, the first ones whose names
    come after `after`.
    """

    state: str | None = None
    target: str | None = None
    owner: str | None = None
    name_has: str | None = None
    after: str | None = None
    limit: int | None = None


class GetTask(TaskRequest, frozen=True, kw_only=True):
    """Show one task."""


class GetTaskStatus(TaskRequest, frozen=True, kw_only=True):
    """Show how one task is doing."""
