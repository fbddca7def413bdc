"""Admin requests as the core takes them: path and body in one value, definitions already read."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from manager.core.alarms.group_place import GroupPlace
from protocol.connectors import NOTHING, Needs
from protocol.errands import ErrandKind
from protocol.etags import ALWAYS, Conditions
from protocol.messages.base import Request, Response
from protocol.messages.checks import Begin
from protocol.messages.quarantine import QuarantineRequest
from protocol.messages.tasks import EARLIEST, Offsets, TaskResponse, TaskView
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


class GetTaskAlarms(TaskRequest, frozen=True, kw_only=True):
    """Show the rules of alarms that count for one task."""


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

    Of more than `limit`, the first ones whose names come after `after`.
    """

    state: str | None = None
    target: str | None = None
    owner: str | None = None
    after: str | None = None
    limit: int | None = None


class CountTasks(Request, frozen=True, kw_only=True):
    """Show how many tasks of the group are in which state, and how those of each owner fare."""


class OwnerCounts(msgspec.Struct, frozen=True):
    """How many tasks a member owns in each state; their loads together, None if nobody has told one."""

    states: dict[str, int] = {}
    load: float | None = None

    @property
    def tasks(self) -> int:
        """How many it owns."""
        return sum(self.states.values())


class TaskCounts(Response, frozen=True, kw_only=True):
    """All tasks by state, and those of each member that owns some."""

    states: dict[str, int]
    owners: dict[str, OwnerCounts]

    @property
    def tasks(self) -> int:
        """How many there are."""
        return sum(self.states.values())

    @property
    def unowned(self) -> int:
        """How many of them nobody owns."""
        return self.tasks - sum(owner.tasks for owner in self.owners.values())

    def of(self, member_id: str) -> OwnerCounts:
        """Those of a member."""
        return self.owners.get(member_id, NO_TASKS)


NO_TASKS = OwnerCounts()


class RankTasks(Request, frozen=True, kw_only=True):
    """Show page `page`, from 1, of the tasks in one of `states`: in the order of these, then by name.

    `name_has` is part of the name, in any case of letters; beyond the last page is the last one.
    """

    states: tuple[str, ...]
    limit: int
    page: int = 1
    name_has: str = ""


class RankedTasks(Response, frozen=True, kw_only=True):
    """A page of `total` tasks, and which one it is."""

    tasks: tuple[TaskView, ...]
    page: int
    total: int


class ListCosts(Request, frozen=True, kw_only=True):
    """Show what each task of a member costs it."""

    owner: str


class TaskCost(msgspec.Struct, frozen=True):
    """A task with what its owner has told of its batches."""

    task: str
    state: str
    metrics: dict[str, Any] | None


class TaskCostList(Response, frozen=True, kw_only=True):
    """The tasks that a member owns, in no order."""

    tasks: tuple[TaskCost, ...]


class ListAlarms(Request, frozen=True, kw_only=True):
    """Show what fires, what is pending, and the `past` last ones that are over.

    The first `limit` of all, or of those that come `after` a place in that list.
    """

    limit: int
    past: int = 0
    after: GroupPlace | None = None


class AcknowledgeAlarms(Request, frozen=True, kw_only=True):
    """`by` has seen what fires of a rule; without a `subject` of all tasks and members."""

    rule: str
    by: str
    subject: str | None = None


class GetTask(TaskRequest, frozen=True, kw_only=True):
    """Show one task."""


class GetTaskStatus(TaskRequest, frozen=True, kw_only=True):
    """Show how one task is doing."""
