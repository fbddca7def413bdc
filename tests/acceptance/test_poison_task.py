"""A task that ends the JVM of whoever runs it costs two workers, and no other task its run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from protocol.errors import RefusedError
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually
from worker.host import EXIT_CODES
from worker.membership.events import Reason

if TYPE_CHECKING:
    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

WORKERS = ("anna", "berta", "carla")
INNOCENT = tuple(f"good-{number}" for number in range(7))
POISON = '''
"""An entry point whose first batch ends the JVM, as `System.exit` in a library does."""


def run(context):
    def exit(frame, batch_id):
        context.spark._jvm.java.lang.System.exit(3)

    return context.foreach_batch(context.spark.readStream.format("rate").load(), exit)
'''


def test_one_poison_task_does_not_kill_every_worker(herd: Herd) -> None:
    """Nobody starts dead workers again: the third one runs the seven others, the poison task is FAILED."""
    (herd.folder / "poison.py").write_text(POISON)
    for name in WORKERS:
        herd.start_worker(name, "--allow-entrypoint", "poison")
    group = GroupView(herd)
    eventually(lambda: _present(group) == len(WORKERS), "all are members", alive=herd.daemons)
    for name in INNOCENT:
        group.create(name, ticking(herd.folder, name.replace("-", "_")))
    group.create("poison", {"entrypoint": "poison:run", "fenced": True})
    eventually(
        lambda: group.tasks()["poison"].state == TaskState.FAILED.value or not _alive(herd),
        "the poison task is FAILED",
        alive=[herd.manager],
    )
    eventually(lambda: len(_alive(herd)) <= 1, "the dead have gone", alive=[herd.manager])
    assert len(_alive(herd)) == 1
    eventually(
        lambda: all(group.tasks()[name].state == TaskState.RUNNING.value for name in INNOCENT),
        "all others run",
        alive=[herd.manager],
    )
    cause = group.tasks()["poison"].cause or ""
    assert "2 workers died" in cause
    assert "exit code 3" in cause
    dead = [worker for name, worker in herd.workers.items() if name not in _alive(herd)]
    assert [worker.process.poll() for worker in dead] == [EXIT_CODES[Reason.ENGINE_DIED]] * 2
    shown = sparkherd(
        *("tasks", "status", "--group", GROUP, "poison", "--manager", herd.manager.url), cwd=herd.folder
    )
    assert "2 workers died" in shown.stdout


def _alive(herd: Herd) -> set[str]:
    return {name for name, worker in herd.workers.items() if worker.process.poll() is None}


def _present(group: GroupView) -> int:
    with suppress(RefusedError):  # no such group before the first join
        return len(group.workers())
    return 0
