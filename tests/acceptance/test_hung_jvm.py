"""A JVM that hangs, its worker's process beside it not."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from protocol.errors import RefusedError
from protocol.states import TaskState
from tests.acceptance.chaos.stage import jvm_of
from tests.acceptance.group_view import GroupView, ticking
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

JVM_TIMEOUT_S = 30
STARTED = {TaskState.STARTING.value, TaskState.RUNNING.value}


def test_a_worker_whose_jvm_hangs_goes_on_until_it_gives_it_up(herd: Herd) -> None:
    """It takes part in a rebalance meanwhile; then it kills the JVM, leaves, and says so by its exit code."""
    worker, group = herd.start_worker("anna", "--jvm-timeout-ms", str(1000 * JVM_TIMEOUT_S)), GroupView(herd)
    eventually(lambda: present(group), "the worker is a member", alive=herd.daemons)
    group.create("one", ticking(herd.folder, "one"))
    eventually(lambda: group.tasks()["one"].batch_id, "the task runs", alive=herd.daemons)
    jvm = jvm_of(worker)
    os.kill(jvm, signal.SIGSTOP)
    group.create("two", ticking(herd.folder, "two"))
    eventually(lambda: group.tasks()["two"].state in STARTED, "the other task is granted", alive=herd.daemons)
    assert worker.process.wait(400) == 4
    assert f"the JVM has not answered for {JVM_TIMEOUT_S} s and was killed" in worker.log()
    assert not Path(f"/proc/{jvm}").exists()
    assert group.workers() == {}


def present(group: GroupView) -> bool:
    """Whether the group has a member."""
    with suppress(RefusedError):  # no such group before the first join
        return bool(group.workers())
    return False
