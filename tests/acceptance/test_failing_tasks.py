"""A task that cannot run says why, FAILED or where nobody could UNASSIGNED, and harms no other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import RefusedError
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

AT_ONCE = {"max_restarts": 0}


def failing(folder: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """Definitions that only a worker can find fault with, and what their cause must name."""
    good = ticking(folder, "unused")
    files = {"format": "json", "schema": "a INT"}
    missing = {**files, "options": {"path": str(folder / "missing")}}
    return {
        "no-path": (
            {**good, "source": missing, "sql": "SELECT a FROM source", "restart": AT_ONCE},
            "missing",
        ),
        "no-column": ({**good, "sql": "SELECT valeu FROM source", "restart": AT_ONCE}, "valeu"),
        "no-module": ({"entrypoint": "no.such.module:f", "restart": AT_ONCE}, "no.such"),
        "not-allowed": ({"entrypoint": "os.path:join", "restart": AT_ONCE}, "--allow-entrypoint"),
        "no-database": (
            {
                **good,
                "sink": {"format": "sql", "options": {"url": "sqlite:////proc/nowhere/x.db", "table": "t"}},
                "restart": AT_ONCE,
            },
            "/proc/nowhere",
        ),
    }


def test_failing_tasks_harm_no_other(herd: Herd) -> None:
    """Each is FAILED with a cause that names the fault; the good one beside them goes on batch by batch."""
    herd.start_worker("anna", "--allow-entrypoint", "no.such")
    group, expected = GroupView(herd), failing(herd.folder)
    eventually(lambda: _present(group), "the worker is a member", alive=herd.daemons)
    group.create("good", ticking(herd.folder, "good"))
    group.create("no-format", {**ticking(herd.folder, "unused"), "source": {"format": "carrierpigeon"}})
    for name, (definition, _) in expected.items():
        group.create(name, definition)
    eventually(lambda: _failed(group) == set(expected), "all of them failed", alive=herd.daemons)
    tasks = group.tasks()
    assert {
        name: named in (tasks[name].cause or "") for name, (_, named) in expected.items()
    } == dict.fromkeys(expected, True)
    assert tasks["no-format"].state == TaskState.UNASSIGNED.value
    assert "no worker has the source `carrierpigeon`; start one with --packages" in (
        tasks["no-format"].cause or ""
    )
    at = tasks["good"].batch_id or 0
    eventually(
        lambda: (group.tasks()["good"].batch_id or 0) > at + 2, "the good one goes on", alive=herd.daemons
    )
    shown = sparkherd(
        *("tasks", "status", "--group", GROUP, "no-path", "--manager", herd.manager.url), cwd=herd.folder
    )
    assert "FAILED" in shown.stdout
    assert "missing" in shown.stdout


def _present(group: GroupView) -> bool:
    with suppress(RefusedError):  # no such group before the first join
        return bool(group.workers())
    return False


def _failed(group: GroupView) -> set[str]:
    return {name for name, task in group.tasks().items() if task.state == TaskState.FAILED.value}
