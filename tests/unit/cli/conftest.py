"""The command line run in this process, against managers that say what a test wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cli.client.admin_client import AdminClient
from cli.main import run
from tests.unit.cli.answers import member, task
from tests.unit.cli.scripted_manager import ScriptedManager, scripted_manager
from tests.unit.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def manager() -> Iterator[ScriptedManager]:
    """A scripted manager."""
    with scripted_manager() as scripted:
        yield scripted


@pytest.fixture
def other_manager() -> Iterator[ScriptedManager]:
    """A second one."""
    with scripted_manager() as scripted:
        yield scripted


@dataclass(frozen=True)
class Run:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def sparkherd(capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Run `sparkherd ARGS...` in this process."""

    def invoke(*args: str) -> Run:
        code = run(args)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return invoke


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


@pytest.fixture
def client(herd: ScriptedManager) -> AdminClient:
    """A client of the herd's manager."""
    return AdminClient([herd.url])


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Puts a terminal in place of stdout; to be called in the test: pytest puts its own there before."""

    def take() -> Terminal:
        terminal = Terminal()
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr("sys.stdout", terminal)
        return terminal

    return take
