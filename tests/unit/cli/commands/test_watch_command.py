"""`groups watch`: what is new between two looks, and how it begins, goes on and ends."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from cli.views import progress
from cli.views.group_changes import GroupSnapshot, changes, look, seen_last
from tests.unit.cli.answers import member, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.admin_client import AdminClient
    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager
    from tests.unit.cli.terminal import Terminal


class Stage:
    """What the group shows at each look; after the last step the person presses Ctrl-C."""

    def __init__(self, manager: ScriptedManager) -> None:
        self._manager = manager
        self.steps: list[Callable[[], None]] = []

    def group(self, **changes: Any) -> None:
        """The group has changed."""
        self._manager.on(
            "GET", "/v1/groups/herd", self._manager.answers["GET", "/v1/groups/herd"][1] | changes
        )

    def tasks(self, *tasks: dict[str, Any]) -> None:
        """These are its tasks now."""
        self._manager.on(
            "GET", "/v1/groups/herd/tasks", {"error": "NONE", "tasks": tasks, "tasks_revision": 1}
        )

    def refuse(self, code: str, status: int) -> None:
        """The manager does not say how it is doing."""
        answer = {"error": code, "message": "says the test", "retriable": True}
        self._manager.on("GET", "/v1/groups/herd", answer, status)

    def pause(self, _seconds: float) -> None:
        """Time passes."""
        if not self.steps:
            raise KeyboardInterrupt
        self.steps.pop(0)()


@pytest.fixture
def stage(herd: ScriptedManager, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The herd on a stage."""
    stage = Stage(herd)
    monkeypatch.setattr(progress, "pause", stage.pause)
    return stage


def lines(run: Run) -> list[str]:
    """What was printed, without the time."""
    assert run.code == 0, run.err
    return [line.partition("  ")[2] for line in run.out.splitlines()]


def watching(sparkherd: Callable[..., Run], herd: ScriptedManager, *flags: str) -> Run:
    """`groups watch herd`."""
    return sparkherd("groups", "watch", "herd", "--manager", herd.url, *flags)


FIRST = [
    "group Stable, generation 2, leader w-1, 1 members, 2 tasks",
    "member w-1 joined from 127.0.0.1",
    "task delays RUNNING on w-1, token 3",
    "task late FAILED on w-1, token 3: no such path",
]


def test_first_all_then_only_what_is_new(
    sparkherd: Callable[..., Run], herd: ScriptedManager, stage: Stage
) -> None:
    """A line a change; another batch is none. Ctrl-C is the way to end it, so the exit code is 0."""
    stage.steps = [
        lambda: stage.tasks(task("delays", batch_id=18, metrics={"n": 3}), task("late")),
        lambda: stage.tasks(
            task("delays", owner="w-2", token=4), task("new", state="UNASSIGNED", owner=None)
        ),
        lambda: stage.group(generation_id=3, members=[member(draining=True), member(member_id="w-2")]),
        lambda: stage.group(members=[member(member_id="w-2")], leader_id="w-2"),
    ]
    shown = lines(watching(sparkherd, herd))
    assert shown[:4] == FIRST
    assert shown[4:] == [
        "task late RUNNING on w-1, token 3",
        "task late is deleted",
        "task delays RUNNING on w-2, token 4",
        "task new UNASSIGNED, token 3",
        "group Stable, generation 3, leader w-1, 2 members, 2 tasks",
        "member w-1 is being drained",
        "member w-2 joined from 127.0.0.1",
        "group Stable, generation 3, leader w-2, 1 members, 2 tasks",
        "member w-1 is gone",
    ]


def test_trouble_is_told_once_and_outlived(
    sparkherd: Callable[..., Run], herd: ScriptedManager, stage: Stage
) -> None:
    """When the manager is back, what has changed meanwhile is compared with what was seen before."""
    good = herd.answers["GET", "/v1/groups/herd"][1]
    stage.steps = [
        lambda: stage.refuse("COORDINATOR_NOT_AVAILABLE", 503),
        lambda: None,
        lambda: herd.on("GET", "/v1/groups/herd", good),
        lambda: stage.refuse("GROUP_ID_NOT_FOUND", 404),
    ]
    assert lines(watching(sparkherd, herd))[4:] == [
        "COORDINATOR_NOT_AVAILABLE: says the test",
        FIRST[0],
        "there is no group herd any more",
    ]


def test_what_is_wrong_at_first_is_an_error(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A misspelt name is not watched for ever."""
    done = sparkherd("groups", "watch", "hred", "--manager", herd.url)
    assert (done.code, done.out) == (1, "")
    assert "NOT_FOUND" in done.err


def test_json_is_an_object_a_line(sparkherd: Callable[..., Run], herd: ScriptedManager, stage: Stage) -> None:
    """With the names of the API; what is gone has no `now`."""
    stage.steps = [lambda: stage.tasks(task("delays"))]
    told = [json.loads(line) for line in watching(sparkherd, herd, "--json").out.splitlines()]
    assert [(each["kind"], each["name"]) for each in told] == [
        ("group", "herd"),
        ("member", "w-1"),
        ("task", "delays"),
        ("task", "late"),
        ("task", "late"),
    ]
    assert told[2]["now"] == {
        "task": "delays",
        "state": "RUNNING",
        "target": "RUNNING",
        "owner": "w-1",
        "token": 3,
        "restart_count": 0,
        "cause": None,
    }
    assert told[4]["now"] is None
    assert all(each["at_ms"] > 1_600_000_000_000 for each in told)


def test_sigterm_ends_it_too(sparkherd: Callable[..., Run], herd: ScriptedManager, stage: Stage) -> None:
    """In order, and whoever minded the signal before minds it again."""
    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stage.steps = [lambda: signal.raise_signal(signal.SIGTERM)]
    assert lines(watching(sparkherd, herd)) == FIRST
    assert signal.signal(signal.SIGTERM, former) is signal.SIG_IGN


def test_a_terminal_gets_tables(
    sparkherd: Callable[..., Run], herd: ScriptedManager, stage: Stage, on_terminal: Callable[[], Terminal]
) -> None:
    """Tables drawn anew at each look, the latest changes below; the cursor is there again at the end."""
    terminal = on_terminal()
    stage.steps = [lambda: stage.tasks(task("delays", state="PAUSED", target="PAUSED"))]
    assert watching(sparkherd, herd).code == 0
    last = terminal.text.rpartition("MEMBER")[2]
    assert "w-1" in last
    assert "PAUSED" in last
    assert "task late is deleted" in last
    assert terminal.text.rindex("\x1b[?25h") > terminal.text.rindex("\x1b[?25l")


def test_nothing_new_is_no_change(herd: ScriptedManager, client: AdminClient) -> None:
    """Two looks at the same herd, trouble or not."""
    assert herd.requests == []
    snapshot = look(client, "herd")
    assert changes(snapshot, snapshot) == []
    trouble = seen_last(snapshot, GroupSnapshot(trouble="away"))
    assert trouble.tasks == snapshot.tasks
    assert changes(trouble, GroupSnapshot(trouble="away")) == []
