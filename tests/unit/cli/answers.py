"""What a manager says of a small herd."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = {"entrypoint": "a:b"}


def task(name: str, **changes: Any) -> dict[str, Any]:
    """A task as the manager shows it."""
    return {
        "task": name,
        "state": "RUNNING",
        "target": "RUNNING",
        "owner": "w-1",
        "token": 3,
        "generation_id": 2,
        "batch_id": 17,
        "metrics": None,
        "cause": None,
        "since_ms": 0,
        "restart_count": 0,
        "assigned_to": "w-1",
        "definition": DEFINITION,
        "definition_version": 1,
        **changes,
    }


def member(**changes: Any) -> dict[str, Any]:
    """A member as the manager shows it."""
    return {
        "member_id": "w-1",
        "instance_id": None,
        "client_id": "w",
        "host": "127.0.0.1",
        "metadata": {"owned": {}, "capacity": 2.0, "labels": {"zone": "a"}, "url": None, "tasks_revision": 0},
        "assignment": {"tasks": ["delays"]},
        "session_timeout_ms": 10000,
        "last_heartbeat_ms": 0,
        **changes,
    }


def put_answer(**results: str) -> dict[str, Any]:
    """What a manager answers to a list of tasks: a result each."""
    return {
        "error": "NONE",
        "tasks": [
            {"task": task, "result": result, "etag": None, "definition_version": None}
            for task, result in results.items()
        ],
        "tasks_revision": 3,
    }


def tasks_file(tmp_path: Path) -> str:
    """Two tasks: one that the group has already, one that is new."""
    path = tmp_path / "tasks.yaml"
    entries = [{"task": "delays", "definition": DEFINITION}, {"task": "new", "definition": DEFINITION}]
    path.write_text(json.dumps({"group": "herd", "tasks": entries}))
    return str(path)
