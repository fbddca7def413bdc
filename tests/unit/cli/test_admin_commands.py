"""groups, tasks and workers: what they ask the manager, and what they print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

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


@pytest.fixture
def herd(manager: ScriptedManager) -> ScriptedManager:
    """A manager with one group of one worker and two tasks."""
    group = {"group": "herd", "state": "Stable", "protocol_type": "sparkherd", "generation_id": 2}
    described = {"protocol_name": "sticky", "leader_id": "w-1", "members": [member()], "tasks_revision": 4}
    tasks = [task("delays"), task("late", state="FAILED", cause="no such path\ntrace", batch_id=None)]
    manager.on("GET", "/v1/groups", {"error": "NONE", "groups": [{**group, "members": 1, "tasks": 2}]})
    manager.on("GET", "/v1/groups/herd", {"error": "NONE", **group, **described, "tasks": 2})
    manager.on("GET", "/v1/groups/herd/tasks", {"error": "NONE", "tasks": tasks, "tasks_revision": 4})
    for each in tasks:
        manager.on("GET", f"/v1/groups/herd/tasks/{each['task']}/status", {"error": "NONE", **each})
    return manager


def lines(text: str) -> list[list[str]]:
    """The cells of a printed table."""
    return [line.split() for line in text.splitlines()]


def test_groups_list(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A table for people; as JSON what the manager said."""
    printed = lines(sparkherd("groups", "list", "--manager", herd.url).out)
    assert printed == [
        ["GROUP", "STATE", "TYPE", "GENERATION", "MEMBERS", "TASKS"],
        ["herd", "Stable", "sparkherd", "2", "1", "2"],
    ]
    assert json.loads(sparkherd("groups", "list", "--json", "--manager", herd.url).out)[0]["members"] == 1


def test_groups_describe(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """The group in one line, and its members, the leader marked."""
    out = sparkherd("groups", "describe", "herd", "--manager", herd.url).out
    assert "herd: Stable, generation 2, assignor sticky, 2 tasks" in out
    assert "w-1 (leader)" in out


def test_groups_describe_of_a_foreign_type(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A member whose assignment is none of ours is shown all the same."""
    described = herd.answers["GET", "/v1/groups/herd"][1]
    herd.on("GET", "/v1/groups/herd", {**described, "members": [member(assignment=None, metadata=7)]})
    assert sparkherd("groups", "describe", "herd", "--manager", herd.url).code == 0


def test_groups_rebalance_and_delete(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Each asks the manager for just that."""
    herd.on("POST", "/v1/groups/herd/rebalance", {"error": "NONE"})
    herd.on("DELETE", "/v1/groups/herd", {"error": "NONE"})
    assert sparkherd("groups", "rebalance", "herd", "--reason", "why", "--manager", herd.url).code == 0
    assert sparkherd("groups", "delete", "herd", "--json", "--manager", herd.url).code == 0
    assert herd.asked("POST") == [("/v1/groups/herd/rebalance", {"reason": "why"})]
    assert herd.asked("DELETE") == [("/v1/groups/herd", None)]


def test_workers_list(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Workers with their capacity, labels and number of tasks."""
    row = lines(sparkherd("workers", "list", "--group", "herd", "--manager", herd.url).out)[1]
    assert row[:6] == ["w-1", "-", "127.0.0.1", "2.0", "zone=a", "2"]


def test_workers_drain_and_undo(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Each asks the manager for just that, and says what comes of it."""
    path = "/v1/groups/herd/members/w-1/drain"
    herd.on("POST", path, {"error": "NONE"}, 202)
    herd.on("DELETE", path, {"error": "NONE"}, 202)
    told = sparkherd("workers", "drain", "w-1", "--group", "herd", "--manager", herd.url)
    assert (told.code, told.out) == (0, "w-1 is being drained, its tasks move away\n")
    undone = sparkherd(
        "workers", "drain", "w-1", "--undo", "--group", "herd", "--json", "--manager", herd.url
    )
    assert json.loads(undone.out) == {"worker": "w-1", "draining": False}
    assert [(method, asked) for method, asked, _ in herd.requests] == [("POST", path), ("DELETE", path)]


def test_workers_of_a_foreign_group(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A group of another protocol type has members but no workers."""
    described = herd.answers["GET", "/v1/groups/herd"][1]
    herd.on("GET", "/v1/groups/herd", {**described, "protocol_type": "consumer"})
    done = sparkherd("workers", "list", "--group", "herd", "--manager", herd.url)
    assert done.code == 2
    assert "'consumer'" in done.err


def test_tasks_list_shows_the_first_line_of_a_cause(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """A table stays a table however long the trace."""
    out = sparkherd("tasks", "list", "--group", "herd", "--manager", herd.url).out
    assert len(out.splitlines()) == 3
    assert "no such path" in out
    assert "trace" not in out


def test_tasks_status_shows_the_whole_cause(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Asked for one task, the trace is there too."""
    out = sparkherd("tasks", "status", "late", "--group", "herd", "--manager", herd.url).out
    assert "late: no such path\ntrace" in out


@pytest.mark.parametrize(
    ("verb", "method", "suffix"),
    [
        ("pause", "PUT", "/pause"),
        ("resume", "PUT", "/resume"),
        ("stop", "PUT", "/stop"),
        ("restart", "POST", "/restart"),
        ("delete", "DELETE", ""),
    ],
)
def test_steering(
    sparkherd: Callable[..., Run], herd: ScriptedManager, verb: str, method: str, suffix: str
) -> None:
    """Each verb asks its one thing of each task."""
    for name in ("delays", "late"):
        herd.on(method, f"/v1/groups/herd/tasks/{name}{suffix}", {"error": "NONE"}, 202)
    done = sparkherd("tasks", verb, "delays", "late", "--group", "herd", "--manager", herd.url)
    assert done.code == 0
    assert [path for path, _ in herd.asked(method)] == [
        f"/v1/groups/herd/tasks/{name}{suffix}" for name in ("delays", "late")
    ]


def tasks_file(tmp_path: Path) -> str:
    """Two tasks: one that the group has already, one that is new."""
    path = tmp_path / "tasks.yaml"
    entries = [{"task": "delays", "definition": DEFINITION}, {"task": "new", "definition": DEFINITION}]
    path.write_text(json.dumps({"group": "herd", "tasks": entries}))
    return str(path)


def test_apply_creates_what_is_missing(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """What is there as it should be is left alone."""
    herd.on("POST", "/v1/tasks/validate", {"error": "NONE", "problems": []})
    herd.on("PUT", "/v1/groups/herd/tasks/new", {"error": "NONE", **task("new")}, 201)
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    assert (done.code, done.out) == (0, "delays: unchanged\nnew: created\n")
    assert herd.asked("PUT") == [("/v1/groups/herd/tasks/new", {"definition": DEFINITION, "target": None})]


def test_apply_is_all_or_nothing(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """Every problem of every task is shown, each on its line, and nothing is created."""
    problems = [{"path": "sql", "message": "does not parse"}, {"path": "sink", "message": "is required"}]
    herd.on("POST", "/v1/tasks/validate", {"error": "NONE", "problems": problems})
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    assert done.code == 2
    assert done.err.splitlines() == [
        f"sparkherd: {name}: {p['path']}: {p['message']}" for name in ("delays", "new") for p in problems
    ]
    assert herd.asked("PUT") == []


def test_apply_dry_run_into_a_new_group(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """A dry run says what it would do; a group that is not there yet is no obstacle."""
    herd.on("POST", "/v1/tasks/validate", {"error": "NONE", "problems": []})
    herd.on("GET", "/v1/groups/other/tasks", {"error": "GROUP_ID_NOT_FOUND", "message": ""}, 404)
    done = sparkherd(
        *("tasks", "apply", "-f", tasks_file(tmp_path), "--group", "other", "--dry-run", "--json"),
        *("--manager", herd.url),
    )
    assert json.loads(done.out) == {
        "group": "other",
        "dry_run": True,
        "tasks": [{"task": "delays", "action": "created"}, {"task": "new", "action": "created"}],
    }
    assert herd.asked("PUT") == []


def test_apply_without_a_group(sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path) -> None:
    """The group must come from somewhere."""
    path = tmp_path / "tasks.yaml"
    path.write_text("tasks: []")
    done = sparkherd("tasks", "apply", "-f", str(path), "--manager", herd.url)
    assert done.code == 2
    assert "--group" in done.err
