"""Where things are. Names of groups and tasks are legal in paths as they are; ids of members need not be."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def group_path(group: str) -> str:
    """The page of a group."""
    return f"/groups/{quote(group, safe='')}"


def task_path(group: str, task: str) -> str:
    """The page of a task."""
    return f"{group_path(group)}/tasks/{quote(task, safe='')}"


def worker_path(group: str, member_id: str) -> str:
    """The page of a worker."""
    return f"{group_path(group)}/workers/{quote(member_id, safe='')}"


def edit_path(group: str, task: str) -> str:
    """Where a task's definition is changed."""
    return f"{task_path(group, task)}/edit"


def quarantine_path(group: str, task: str) -> str:
    """Where rows are looked at that a task has put aside."""
    return f"{task_path(group, task)}/quarantine"


def group_api(group: str) -> str:
    """Where a group is steered."""
    return f"/v1{group_path(group)}"


def task_api(group: str, task: str) -> str:
    """Where a task is steered."""
    return f"/v1{task_path(group, task)}"


def transfer_api(transfer: str) -> str:
    """Where a transfer is cancelled."""
    return f"/v1/transfers/{quote(transfer, safe='')}"


def member_api(group: str, member_id: str) -> str:
    """Where a member is steered."""
    return f"{group_api(group)}/members/{quote(member_id, safe='')}"


def with_query(path: str, **query: str | int | None) -> str:
    """`path` with what is not empty of `query`."""
    asked = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{asked}" if asked else path
