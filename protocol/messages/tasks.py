"""Tasks as leaders and admin clients see them (protocol §5)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from protocol.connectors import Needs
from protocol.errors import ErrorCode
from protocol.etags import Tags
from protocol.messages.base import PageQuery, Request, Response, Whole
from protocol.messages.heap import HeapSuspicion
from protocol.messages.lag import TaskLag
from protocol.names import Name
from protocol.states import Target

EARLIEST: Final = "earliest"
Options = dict[str, str | Whole | float | bool]
Offsets = Literal["earliest"] | Options
"""Where a task that was reset begins: at its source's earliest offsets, or with these options of it."""


_OFFSETS = msgspec.json.schema(Offsets)


class TaskReset(msgspec.Struct, frozen=True):
    """The last reset of a task; each has a checkpoint of its own, under `number`, the token that it took.

    So numbers only grow, as tokens do, and beginning twice under one is no different from doing it once.
    """

    number: int
    offsets: Offsets = EARLIEST


class TaskHome(msgspec.Struct, frozen=True):
    """The names that checkpoints, sinks and quarantines know a task by, if it has not always had its own.

    A task that has come from another group keeps those it was created under: what knows it, knows it still.
    """

    group: str
    task: str


class Reached(msgspec.Struct, frozen=True):
    """How far a task has come: the last batch heard of, in which checkpoint that was, and at which member."""

    batch_id: int
    checkpoint: str
    member_id: str


_NO_ENTRY_POINT = {"entrypoint": {"type": "null"}, "options": {"maxProperties": 0}}
_ONE_SOURCE = {
    "required": ["source", "sink"],
    "properties": {
        "source": {"type": "object"},
        "sources": {"maxProperties": 0},
        "sink": {"type": "object"},
        **_NO_ENTRY_POINT,
    },
}
_SEVERAL_SOURCES = {
    "required": ["sources", "sql", "sink"],
    "properties": {
        "source": {"type": "null"},
        "sources": {"minProperties": 1},
        "sql": {"type": "string"},
        "sink": {"type": "object"},
        **_NO_ENTRY_POINT,
    },
}
_ENTRY_POINT = {
    "required": ["entrypoint"],
    "properties": {
        "entrypoint": {"type": "string"},
        "source": {"type": "null"},
        "sources": {"maxProperties": 0},
        "sql": {"type": "null"},
    },
}
Definition = Annotated[
    msgspec.Raw,
    msgspec.Meta(
        extra_json_schema={
            "$ref": "#/components/schemas/Definition",
            "anyOf": [_ONE_SOURCE, _SEVERAL_SOURCES, _ENTRY_POINT],
        }
    ),
]
"""A `definition.document.Definition` that is passed on as it came."""


class OfferedTask(msgspec.Struct, frozen=True, gc=False):
    """A task to be assigned, as the leader is told of it.

    `returns_to` is there only for a task that was kept for a lost worker: the member that it is now.
    `suspect` is there only for one that may have killed its workers, and is to be on a worker of its own.
    `needs` is there only for one that a worker's Spark may lack something for, `exclusive` only for one that
    its definition wants a worker of its own for. `lag` is how many rows it is behind, if that is known.
    """

    task: str
    weight: float
    worker: str | None
    labels: dict[str, str]
    load: float | None
    returns_to: str | msgspec.UnsetType = msgspec.UNSET
    suspect: bool | msgspec.UnsetType = msgspec.UNSET
    needs: Needs | msgspec.UnsetType = msgspec.UNSET
    exclusive: bool | msgspec.UnsetType = msgspec.UNSET
    lag: int | msgspec.UnsetType = msgspec.UNSET


class TaskListQuery(PageQuery, frozen=True, kw_only=True):
    """Which tasks are asked for, their words in any case; one that is no state or target matches none."""

    state: str | None = None
    target: str | None = None
    owner: str | None = None


class CreateTaskRequest(Request, frozen=True, kw_only=True):
    """A new task. The definition is checked as a whole by `definition.document`, so it arrives unread."""

    task: Name
    definition: Definition
    target: Target = Target.RUNNING


class PutTaskRequest(Request, frozen=True, kw_only=True):
    """Create or replace; without `target` an existing task keeps its own."""

    definition: Definition
    target: Target | None = None


class TaskToPut(msgspec.Struct, frozen=True, kw_only=True):
    """One of several tasks: as `PutTaskRequest`; the conditions are `If-Match` and `If-None-Match` of it."""

    task: Name
    definition: Definition
    target: Target | None = None
    if_match: Tags | None = None
    if_none_match: Tags | None = None


class PutTasksRequest(Request, frozen=True, kw_only=True):
    """Create or replace `tasks` and forget those of `delete`: all of it or nothing, in one transaction.

    With `validate_only` nothing is done, but everything is checked, and answered as if it had been.
    """

    tasks: tuple[TaskToPut, ...] = ()
    delete: tuple[Name, ...] = ()
    validate_only: bool = False


PutResult = Literal["created", "changed", "unchanged", "deleted"]


class TaskPut(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task; `etag` and `definition_version` are its own now, null if it is gone."""

    task: str
    result: PutResult
    etag: str | None
    definition_version: int | None


class PutTasksResponse(Response, frozen=True, kw_only=True):
    """One result a task: those of `tasks`, then those of `delete`, each in the order of the request.

    `etag` is that of all tasks of the group as they are now (with `validate_only`, as they were before); null
    if there is no such group.
    """

    tasks: tuple[TaskPut, ...]
    tasks_revision: int
    etag: str | None = None


class ValidateTaskRequest(Request, frozen=True, kw_only=True):
    """Look at a definition without creating anything."""

    definition: msgspec.Raw


class ResetTaskRequest(Request, frozen=True, kw_only=True):
    """Start a stopped task anew; `offsets` is checked by `definition.resets`, so it arrives unread."""

    offsets: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema=_OFFSETS)] = msgspec.field(
        default_factory=lambda: msgspec.Raw(b'"earliest"')
    )


class ResetTaskResponse(Response, frozen=True, kw_only=True):
    """The reset is durable, and every token below `token` fenced; `meaning` is for people."""

    task: str
    token: int
    reset: TaskReset
    meaning: str


class Problem(msgspec.Struct, frozen=True, order=True):
    """One fault of a definition; `path` names the place in the document, as `sink.options.table`."""

    path: str
    message: str


class ValidateTaskResponse(Response, frozen=True, kw_only=True):
    """Every fault at once; none means the definition can be created."""

    problems: tuple[Problem, ...]


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a task is doing; one that is `quarantined` is given to nobody before somebody takes its side.

    `transfer` is the one that it is under, `home` the names that its sink knows it by if these are others.
    """

    task: str
    state: str
    target: str
    owner: str | None
    token: int
    generation_id: int
    batch_id: int | None
    metrics: dict[str, Any] | None
    cause: str | None
    since_ms: int
    restart_count: int
    assigned_to: str | None
    reset: TaskReset | None = None
    lag: TaskLag | None = None
    quarantined: bool = False
    heap_suspicion: HeapSuspicion | None = None
    home: TaskHome | None = None
    transfer: str | None = None


class TaskStatusResponse(TaskStatus, frozen=True, kw_only=True):
    """`TaskStatus` as a response of its own."""

    error: str = ErrorCode.NONE.value


class TaskView(TaskStatus, frozen=True, kw_only=True):
    """A task with its definition."""

    definition: Definition
    definition_version: int


class TaskResponse(TaskView, frozen=True, kw_only=True):
    """`TaskView` as a response of its own."""

    error: str = ErrorCode.NONE.value


class TaskListResponse(Response, frozen=True, kw_only=True):
    """All tasks of a group, by name; `next` is what to ask `after` if there are more.

    `etag` is that of all tasks of the group, whichever were asked for.
    """

    tasks: tuple[TaskView, ...]
    tasks_revision: int
    next: str | None = None
    etag: str | None = None
