"""A worker that looks for checkpoints in another place runs nothing that has one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from protocol.errors import RefusedError
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from protocol.messages.tasks import TaskView
    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]


def test_another_checkpoint_root_is_refused_by_every_sink(herd: Herd) -> None:
    """A relative root is another folder for each worker: both tasks are FAILED, and both places are named."""
    elsewhere = herd.folder / "elsewhere"
    herd.start_worker("anna")
    group = GroupView(herd)
    eventually(lambda: _is_present(group, "anna"), "anna is a member", alive=herd.daemons)
    files = {"format": "json", "options": {"path": str(herd.folder / "out")}}
    group.create("plain", {**ticking(herd.folder, "unused"), "sink": files})
    group.create("fenced", ticking(herd.folder, "fenced"))
    eventually(lambda: group.settled(1), "both have done batches", alive=herd.daemons)
    herd.workers.pop("anna").terminate()
    reached = {name: task.batch_id for name, task in group.tasks().items()}
    herd.start_worker("berta", "--checkpoint-root", str(elsewhere))
    tasks = eventually(
        lambda: _all(group, TaskState.FAILED), "both are refused", alive=herd.daemons, within_s=100
    )
    for name, task in tasks.items():
        cause = task.cause or ""
        assert str(elsewhere / GROUP / name) in cause
        assert str(herd.folder / "checkpoints" / GROUP / name) in cause
        assert "anna" in cause
    assert {name: task.batch_id for name, task in tasks.items()} == reached
    herd.workers.pop("berta").terminate()
    herd.start_worker("carla")
    eventually(lambda: _all(group, TaskState.RUNNING), "the right one goes on", alive=herd.daemons)
    eventually(
        lambda: all((task.batch_id or 0) > (reached[name] or 0) for name, task in group.tasks().items()),
        "with later batches",
        alive=herd.daemons,
    )


def _all(group: GroupView, state: TaskState) -> dict[str, TaskView] | None:
    tasks = group.tasks()
    return tasks if all(task.state == state.value for task in tasks.values()) else None


def _is_present(group: GroupView, name: str) -> bool:
    with suppress(RefusedError):  # no such group before the first join
        return name in group.workers()
    return False
