"""A group as its admin sees it, and what tests ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cli.client.admin_client import AdminClient, path_of
from protocol.messages.base import Response, decode_opaque
from protocol.messages.groups import DescribeGroupResponse, GroupListResponse, GroupSummary
from protocol.messages.quarantine import LONGEST_MS, QuarantineChangeRequest, QuarantineResponse
from protocol.messages.tasks import (
    CreateTaskRequest,
    PutTaskRequest,
    ResetTaskRequest,
    ResetTaskResponse,
    TaskListResponse,
    TaskResponse,
    TaskStatusResponse,
    TaskView,
)
from protocol.states import GroupState, TaskState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.processes import Herd

GROUP = "herd"


class GroupView:
    """Reads the group through the manager's API."""

    def __init__(self, herd: Herd | AdminClient) -> None:
        self._client = herd if isinstance(herd, AdminClient) else herd.manager.client()

    def groups(self) -> dict[str, GroupSummary]:
        """All groups, by name."""
        found = self._client.get(path_of("groups"), GroupListResponse).groups
        return {group.group: group for group in found}

    def describe(self) -> DescribeGroupResponse:
        """The group."""
        return self._client.get(path_of("groups", GROUP), DescribeGroupResponse)

    def tasks(self) -> dict[str, TaskView]:
        """Its tasks, by name."""
        found = self._client.get(path_of("groups", GROUP, "tasks"), TaskListResponse).tasks
        return {task.task: task for task in found}

    def workers(self) -> dict[str, str]:
        """Member ids by the workers' names."""
        return {member.client_id: member.member_id for member in self.describe().members}

    def create(self, name: str, definition: dict[str, Any]) -> None:
        """Create a task."""
        body = CreateTaskRequest(task=name, definition=msgspec.Raw(msgspec.json.encode(definition)))
        self._client.call("POST", path_of("groups", GROUP, "tasks"), body, into=TaskResponse)

    def put(self, name: str, definition: dict[str, Any]) -> None:
        """Create a task, or replace its definition; the second time nothing changes."""
        body = PutTaskRequest(definition=msgspec.Raw(msgspec.json.encode(definition)))
        self._client.call("PUT", path_of("groups", GROUP, "tasks", name), body, into=TaskResponse)

    def delete(self, name: str) -> None:
        """Delete a task."""
        self._client.call("DELETE", path_of("groups", GROUP, "tasks", name), into=Response)

    def stop(self, name: str) -> None:
        """Have a task stopped."""
        self._client.call("PUT", path_of("groups", GROUP, "tasks", name, "stop"), into=TaskStatusResponse)

    def is_stopped(self, name: str) -> bool:
        """Whether nobody has it any more."""
        found = self.tasks()[name]
        return found.owner is None and found.state == TaskState.STOPPED.value

    def resume(self, name: str) -> None:
        """Have a task run again."""
        self._client.call("PUT", path_of("groups", GROUP, "tasks", name, "resume"), into=TaskStatusResponse)

    def reset(self, name: str) -> int:
        """Have a stopped task begin anew; returns the reset's number."""
        where = path_of("groups", GROUP, "tasks", name, "reset")
        return self._client.call("POST", where, ResetTaskRequest(), into=ResetTaskResponse).token

    def replay(self, name: str) -> QuarantineResponse:
        """Have all rows played again that a task has put aside."""
        body = QuarantineChangeRequest(all=True, timeout_ms=LONGEST_MS)
        where = path_of("groups", GROUP, "tasks", name, "quarantine", "replay")
        return self._client.call("POST", where, body, into=QuarantineResponse, held_s=LONGEST_MS / 1000)

    def put_aside(self, name: str) -> int:
        """How many rows that are."""
        where = path_of("groups", GROUP, "tasks", name, "quarantine")
        return self._client.get(where, QuarantineResponse).total

    def settled(self, members: int) -> bool:
        """Whether so many members share all tasks, each of which has done a batch where it is to be."""
        described = self.describe()
        return (
            described.state == GroupState.STABLE.value
            and len(described.members) == members
            and not is_moving(described)
            and all(
                task.state == TaskState.RUNNING.value
                and task.batch_id is not None
                and task.owner == task.assigned_to
                for task in self.tasks().values()
            )
        )


def is_moving(group: DescribeGroupResponse) -> bool:
    """Whether more tasks are to move to a member than those it is assigned now (protocol §5, Pace)."""
    given = (decode_opaque(member.assignment) for member in group.members)
    return any(isinstance(each, dict) and each.get("more") is True for each in given)


def ticking(folder: Path, table: str, every: str = "500 milliseconds") -> dict[str, Any]:
    """A query that never ends: numbers, a few a second, into a table, a batch `every` so often."""
    return {
        "source": {"format": "rate", "options": {"rowsPerSecond": 5}},
        "sql": "SELECT value FROM source",
        "sink": {"format": "sql", "options": {"url": f"sqlite:///{folder / 'sink.db'}", "table": table}},
        "trigger": {"processing_time": every},
    }
