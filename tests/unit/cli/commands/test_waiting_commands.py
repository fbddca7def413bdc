"""--wait: until it is done, cannot be done, or takes too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cli.views import progress
from cli.views.progress import WaitProgress, wait_for
from tests.unit.cli.answers import put_answer, task
from tests.unit.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


class Herd:
    """A herd that takes one step whenever somebody who waits has looked at it."""

    def __init__(self, manager: ScriptedManager, steps: list[list[dict[str, Any]]]) -> None:
        self._manager = manager
        self._steps = steps
        self.step()

    def step(self) -> None:
        """The next list of tasks; the last one stays."""
        tasks = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        self._manager.on(
            "GET", "/v1/groups/herd/tasks", {"error": "NONE", "tasks": tasks, "tasks_revision": 1}
        )


@pytest.fixture
def moves(herd: ScriptedManager, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Herd]:
    """Let the herd take these steps, one a look."""

    def set_up(*steps: list[dict[str, Any]]) -> Herd:
        moving = Herd(herd, list(steps))
        monkeypatch.setattr(progress, "pause", lambda _seconds: moving.step())
        return moving

    return set_up


def test_pause_waits_until_all_are_paused(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd]
) -> None:
    """Only the named tasks count; how far it is goes to stderr."""
    herd.on("PUT", "/v1/groups/herd/tasks/delays/pause", {"error": "NONE"}, 202)
    paused = task("delays", target="PAUSED", state="PAUSED")
    moves([task("delays", target="PAUSED"), task("late")], [paused, task("late")])
    done = sparkherd("tasks", "pause", "delays", "--wait", "--group", "herd", "--manager", herd.url)
    assert (done.code, done.out) == (0, "delays: pause asked for\n")
    assert done.err.splitlines() == ["tasks of herd: 0 of 1", "tasks of herd: 1 of 1"]


@pytest.mark.parametrize("state", ["STOPPED", "COMPLETED"])
def test_stop_waits_for_what_has_come_to_its_end_too(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd], state: str
) -> None:
    """A completed task stays so: there is nothing left to stop."""
    herd.on("PUT", "/v1/groups/herd/tasks/delays/stop", {"error": "NONE"}, 202)
    moves([task("delays", target="STOPPED")], [task("delays", target="STOPPED", state=state)])
    done = sparkherd("tasks", "stop", "delays", "--wait", "--group", "herd", "--manager", herd.url)
    assert (done.code, done.err.splitlines()[-1]) == (0, "tasks of herd: 1 of 1")


def test_a_failed_task_ends_the_waiting(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd]
) -> None:
    """Exit code 1 and the first line of its cause."""
    herd.on("PUT", "/v1/groups/herd/tasks/delays/resume", {"error": "NONE"}, 202)
    moves([task("delays", state="FAILED", cause="no such path\ntrace")])
    done = sparkherd("tasks", "resume", "delays", "--wait", "--group", "herd", "--manager", herd.url)
    assert done.code == 1
    assert done.err.splitlines()[-1] == "sparkherd: delays is FAILED: no such path"


def test_a_failure_that_was_mended_is_none(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd], tmp_path: Path
) -> None:
    """The changed task is FAILED until its worker has taken the change up; if it fails again, that counts."""
    herd.on("PUT", "/v1/groups/herd/tasks", put_answer(delays="changed"))
    (tmp_path / "t.yaml").write_text(
        "{group: herd, tasks: [{task: delays, definition: {entrypoint: 'a:c'}}]}"
    )
    command = ("tasks", "apply", "-f", str(tmp_path / "t.yaml"), "--wait", "--manager", herd.url)
    failed = task("delays", state="FAILED", cause="old", since_ms=7)
    moves([failed], [task("delays", state="STARTING", since_ms=8)], [task("delays", since_ms=9)])
    assert sparkherd(*command).code == 0
    moves([failed], [task("delays", state="FAILED", cause="new", since_ms=8)])
    done = sparkherd(*command)
    assert (done.code, done.err.splitlines()[-1]) == (1, "sparkherd: delays is FAILED: new")


def test_drain_waits_until_the_worker_owns_nothing(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd]
) -> None:
    """Task by task."""
    herd.on("POST", "/v1/groups/herd/members/w-1/drain", {"error": "NONE"}, 202)
    here, gone = task("delays"), task("delays", owner="w-2")
    moves([here, here], [here, gone], [gone, gone])
    done = sparkherd("workers", "drain", "w-1", "--wait", "--group", "herd", "--manager", herd.url)
    assert done.code == 0
    assert done.err.splitlines() == [f"tasks moved away from w-1: {n} of 2" for n in (0, 1, 2)]


def test_rebalance_waits_for_a_later_generation(
    sparkherd: Callable[..., Run], herd: ScriptedManager, moves: Callable[..., Herd]
) -> None:
    """A group that is at rest because it has not begun yet is not taken for balanced."""
    herd.on("POST", "/v1/groups/herd/rebalance", {"error": "NONE"}, 202)
    moves([task("delays")])
    done = sparkherd("groups", "rebalance", "herd", "--wait", "--timeout", "0", "--manager", herd.url)
    assert (done.code, done.err.splitlines()[-1]) == (
        1,
        "sparkherd: not within 0 s: herd is balanced, 1 of 2",
    )


def test_workers_remove(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """The member is asked to be removed, and nothing else."""
    herd.on("DELETE", "/v1/groups/herd/members/w-1", {"error": "NONE"})
    done = sparkherd("workers", "remove", "w-1", "--group", "herd", "--manager", herd.url)
    assert (done.code, done.out) == (0, "w-1 removed\n")
    assert herd.asked("DELETE") == [("/v1/groups/herd/members/w-1", None)]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is waited for; it is gone at the end, and the cursor there again."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    assert wait_for(lambda: WaitProgress(3, 3), "tasks", within_s=1) is None
    assert "3/3" in terminal.text
    assert terminal.text.rindex("\x1b[?25h") > terminal.text.rindex("\x1b[?25l")


def test_waiting_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look is at the deadline, not before it."""
    clock = iter(range(10))
    looks: list[int] = []

    def look() -> WaitProgress:
        looks.append(1)
        return WaitProgress(0, 1)

    monkeypatch.setattr(progress, "pause", lambda _seconds: None)
    fault = wait_for(look, "it", within_s=3, now=lambda: float(next(clock)))
    assert (fault, len(looks)) == ("not within 3 s: it, 0 of 1", 3)
