"""Claim, release, report: who runs a task, under which fencing token (protocol §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from protocol.messages.base import BatchId, Generation, Millis, Request, Response, Revision, Token
from protocol.messages.lag import TaskLag
from protocol.messages.resources import WorkerResources
from protocol.messages.tasks import Definition, Reached, TaskHome, TaskReset
from protocol.names import Name
from protocol.states import TaskState
from protocol.task_metrics import out_of_range

Checkpoint = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
"""A path or URL."""
MAX_CAUSE_LENGTH: Final = 20_000
"""Characters of a cause; a trace may be of any length, what is stored and kept in memory may not."""
MAX_METRICS_BYTES: Final = 65_536
"""Of one task's figures, as compact JSON."""


MAX_PREPARED: Final = 64
"""Pending tasks of which one answer has the definitions: they are sent again with each answer."""


class ClaimRequest(Request, frozen=True, kw_only=True):
    """Take over tasks that the present assignment gives to the caller.

    `prepare` is how many of those that are pending the caller makes ready meanwhile, for which it is told
    their definitions.
    """

    member_id: str
    generation_id: Generation
    tasks: tuple[str, ...]
    instance_id: Name | None = None
    wait_ms: Millis = 0
    prepare: Annotated[int, msgspec.Meta(ge=0, le=MAX_PREPARED)] = 0


class GrantedTask(msgspec.Struct, frozen=True):
    """A task the caller owns now, with all it needs to run it.

    `definition_version` counts the changes of a definition; it begins anew with a task of the same name. A
    checkpoint that does not know of the batch that was `reached` is not the task's. `home` are the names that
    checkpoint and sink know it by, if these are not its own.
    """

    task: str
    token: int
    target: str
    definition: Definition
    definition_version: int
    restart_count: int
    reset: TaskReset | None = None
    reached: Reached | None = None
    home: TaskHome | None = None


class PendingTask(msgspec.Struct, frozen=True):
    """A task its present owner has not let go of yet; empty if it waits for its turn here.

    `definition` is there if the caller may make it ready: as it is now, which the grant may say otherwise.
    """

    task: str
    owner: str
    definition: Definition | msgspec.UnsetType = msgspec.UNSET
    reset: TaskReset | msgspec.UnsetType = msgspec.UNSET
    home: TaskHome | msgspec.UnsetType = msgspec.UNSET


class RefusedTask(msgspec.Struct, frozen=True):
    """A task the caller cannot have."""

    task: str
    error: str


class ClaimResponse(Response, frozen=True, kw_only=True):
    """What became of each claimed task, as of `tasks_revision`."""

    granted: tuple[GrantedTask, ...] = ()
    pending: tuple[PendingTask, ...] = ()
    refused: tuple[RefusedTask, ...] = ()
    tasks_revision: Revision | None = None


class ReleaseRequest(Request, frozen=True, kw_only=True):
    """Let go of tasks; each with the token it was owned under.

    The queries of those that are `running` go on until their next owner takes them over, or for a while.
    """

    member_id: str
    tasks: dict[str, Token]
    instance_id: Name | None = None
    running: tuple[str, ...] = ()


class TaskReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a worker has to say of one task it owns; `checkpoint` is the place that knows of `batch_id`.

    `committed` is the last batch that was finished before the query began, by its checkpoint: former owners
    may not have been heard of it. `quarantine`, of a FAILED one, asks that nobody be given it any more, by
    what the worker knew of it as of `tasks_revision`.
    """

    task: str
    token: Token
    state: Annotated[
        TaskState, msgspec.Meta(extra_json_schema={"not": {"const": TaskState.UNASSIGNED.value}})
    ]
    batch_id: BatchId | None = None
    committed: BatchId | None = None
    metrics: dict[str, Any] | None = None
    cause: str | None = None
    checkpoint: Checkpoint | None = None
    lag: TaskLag | None = None
    quarantine: bool = False
    tasks_revision: Revision | None = None

    def __post_init__(self) -> None:
        """A failure is told whatever its text is; it is cut, and NUL, which databases refuse, is replaced."""
        for name in ("cause", "checkpoint"):
            text = getattr(self, name)
            if text is not None and ("\0" in text or len(text) > MAX_CAUSE_LENGTH):
                told = text.lstrip()[:MAX_CAUSE_LENGTH].replace("\0", "\ufffd")
                msgspec.structs.force_setattr(self, name, told)


_OVER_AND_WHY = {
    "if": {"properties": {"quarantine": {"const": True}}, "required": ["quarantine"]},
    "then": {
        "properties": {
            "state": {"const": TaskState.FAILED.value},
            "cause": {"type": "string", "pattern": r"\S"},
        },
        "required": ["cause"],
    },
}
"""Whoever asks for a quarantine says why, of a query that is over."""


class ReportRequest(Request, frozen=True, kw_only=True):
    """News of several tasks at once.

    `found` are queries that the caller does not run: some owner has noted down that it had started one for
    this task under this token, where it may outlive its worker. `resources` is what the caller takes as a
    whole.
    """

    member_id: str
    tasks: tuple[Annotated[TaskReport, msgspec.Meta(extra_json_schema=_OVER_AND_WHY)], ...]
    instance_id: Name | None = None
    found: dict[str, Token] | msgspec.UnsetType = msgspec.UNSET
    resources: WorkerResources | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """Figures are kept, reckoned with, shown and passed on, so they are of a size that can be."""
        for position, report in enumerate(self.tasks):
            path = f"tasks[{position}].metrics"
            for place in out_of_range(report.metrics, path):
                raise ValueError(f"{place}: Integer value out of range")
            if len(msgspec.json.encode(report.metrics)) > MAX_METRICS_BYTES:
                raise ValueError(f"{path}: Expected `object` of at most {MAX_METRICS_BYTES} bytes")


class TaskErrorsResponse(Response, frozen=True, kw_only=True):
    """One error code a task.

    `found` is there if a report has asked: of each query, STALE_TOKEN if nobody owns the task under that
    token any more, nor ever will; NONE if somebody does, or nobody here knows of it.
    """

    tasks: Mapping[str, str]
    found: Mapping[str, str] | msgspec.UnsetType = msgspec.UNSET


class LagRequest(Request, frozen=True, kw_only=True):
    """What the leader has measured of tasks that nobody owns, by name; the answer has the next ones.

    With `more` another request with more of it follows, and the answer has none.
    """

    member_id: str
    tasks: dict[str, TaskLag] = msgspec.field(default_factory=dict)
    instance_id: Name | None = None
    more: bool = False


class OwnerlessTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task whose lag nobody else tells: what it reads; its checkpoint goes by the last reset and `home`."""

    task: str
    definition: Definition
    reset: TaskReset | None = None
    home: TaskHome | None = None


class LagResponse(Response, frozen=True, kw_only=True):
    """The tasks to be measured next, as of `tasks_revision`; none for who does not lead the group.

    `ownerless` counts all there are: a round of all takes as many looks as that takes.
    """

    tasks: tuple[OwnerlessTask, ...] = ()
    ownerless: Annotated[int, msgspec.Meta(ge=0)] = 0
    tasks_revision: Revision | None = None
