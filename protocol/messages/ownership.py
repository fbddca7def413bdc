"""Claim, release, report: who runs a task, under which fencing token (PROTOCOL.md §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from protocol.messages.base import BatchId, Generation, Millis, Request, Response, Revision, Token
from protocol.messages.tasks import Definition, TaskReset
from protocol.names import Name
from protocol.states import TaskState


class ClaimRequest(Request, frozen=True, kw_only=True):
    """Take over tasks that the present assignment gives to the caller."""

    member_id: str
    generation_id: Generation
    tasks: tuple[str, ...]
    instance_id: Name | None = None
    wait_ms: Millis = 0


class GrantedTask(msgspec.Struct, frozen=True):
    """A task the caller owns now, with all it needs to run it."""

    task: str
    token: int
    target: str
    definition: Definition
    definition_version: int
    restart_count: int
    reset: TaskReset | None = None


class PendingTask(msgspec.Struct, frozen=True):
    """A task its present owner has not let go of yet."""

    task: str
    owner: str


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
    """Let go of tasks; each with the token it was owned under."""

    member_id: str
    tasks: dict[str, Token]
    instance_id: Name | None = None


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has to say of one task it owns."""

    task: str
    token: Token
    state: Annotated[
        TaskState, msgspec.Meta(extra_json_schema={"not": {"const": TaskState.UNASSIGNED.value}})
    ]
    batch_id: BatchId | None = None
    metrics: dict[str, Any] | None = None
    cause: str | None = None

    def __post_init__(self) -> None:
        """A failure is told whatever its text is; only NUL, which databases refuse, is replaced."""
        if self.cause is not None and "\0" in self.cause:
            msgspec.structs.force_setattr(self, "cause", self.cause.replace("\0", "\ufffd"))


class ReportRequest(Request, frozen=True, kw_only=True):
    """News of several tasks at once."""

    member_id: str
    tasks: tuple[TaskReport, ...]
    instance_id: Name | None = None


class TaskErrorsResponse(Response, frozen=True, kw_only=True):
    """One error code a task."""

    tasks: Mapping[str, str]
