"""The demo's story, played on a herd that does as it is told."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.live import Live

from cli.demo.demo_tasks import DemoTask
from cli.demo.herd import HerdError
from cli.demo.snapshot import Snapshot, TaskLine
from cli.demo.story import NEW_WORKER, Story
from cli.demo.view import LiveView, PlainView, view
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAN = [DemoTask("a", {}, (1, 2)), DemoTask("b", {}, (1, 2)), DemoTask("c", {}, (1, 2))]


def line(name: str, owner: str | None, token: int = 1, **changes: Any) -> TaskLine:
    """A running task that has read one of its two rows."""
    fields: dict[str, Any] = {
        "state": TaskState.RUNNING,
        "batch_id": 0,
        "rows": 1,
        "rows_in_all": 2,
        "cause": None,
    }
    return TaskLine(name=name, owner=owner, token=token, **{**fields, **changes})


def group(*tasks: TaskLine, workers: Iterable[str] = ("worker-1", "worker-2", "worker-3")) -> Snapshot:
    """A stable group with those tasks."""
    names = tuple(workers)
    return Snapshot("Stable", 3, names[0], names, {task.name: task for task in tasks})


class Told:
    """A herd that is told whom to kill and start, and a view that keeps what it is told."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.started: list[str] = []
        self.said: list[str] = []
        self.dead: str | None = None
        self.in_sink: dict[str, int] = {}

    def kill_worker(self, name: str) -> None:
        self.killed.append(name)

    def start_worker(self, name: str) -> None:
        self.started.append(name)

    def require_alive(self) -> None:
        if self.dead:
            raise HerdError(self.dead)

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def show(self, snapshot: Snapshot) -> None:
        """Nothing to see."""


@pytest.fixture
def told() -> Told:
    """The other side of the story."""
    return Told()


def play(told: Told, monkeypatch: pytest.MonkeyPatch, *moments: Snapshot) -> Story:
    """A story that sees those moments one after another, and the last one for ever, while time flies."""
    seen = itertools.chain(moments, itertools.repeat(moments[-1]))
    clock = itertools.count()
    monkeypatch.setattr("cli.demo.story.snapshot", lambda *_: next(seen))
    monkeypatch.setattr("cli.demo.story.sleep", lambda _: None)
    monkeypatch.setattr("cli.demo.story.monotonic", lambda: float(next(clock)))
    return Story(told, None, PLAN, told, lambda: told.in_sink)  # type: ignore[arg-type]  # doubles of herd and view


def test_the_busiest_worker_is_killed(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half-way; its tasks must come back under a higher token, the others keep theirs."""
    early = group(line("a", "worker-1", rows=0), line("b", "worker-1", rows=0), line("c", "worker-2", rows=0))
    before = group(line("a", "worker-1"), line("b", "worker-1"), line("c", "worker-2"))
    gap = group(line("a", None, state=TaskState.UNASSIGNED), line("b", "worker-1"), line("c", "worker-2"))
    after = group(line("a", "worker-2", 2), line("b", "worker-3", 2), line("c", "worker-2"))
    found = play(told, monkeypatch, early, before, gap, after).kill_one()
    assert told.killed == ["worker-1"]
    assert (found.orphans, found.untouched, found.disturbed) == (["a", "b"], ["c"], [])
    assert found.seconds > 0


def test_a_needless_move_is_told(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that changed hands although its owner lived is named."""
    before = group(line("a", "worker-1"), line("b", "worker-1"), line("c", "worker-2"))
    after = group(line("a", "worker-2", 2), line("b", "worker-3", 2), line("c", "worker-3", 2))
    assert play(told, monkeypatch, before, after).kill_one().disturbed == ["c"]
    assert "moved without need: c" in told.said


def test_only_what_must_move_does(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new worker gets its share; who stayed, stayed."""
    workers = ("worker-2", "worker-3", NEW_WORKER)
    alone = group(line("a", "worker-2"), line("b", "worker-3"), line("c", "worker-2"), workers=workers[:2])
    there = group(line("a", "worker-2"), line("b", "worker-3"), line("c", "worker-2"), workers=workers)
    after = group(line("a", "worker-2"), line("b", "worker-3"), line("c", NEW_WORKER, 2), workers=workers)
    found = play(told, monkeypatch, alone, there, after).add_one()
    assert told.started == [NEW_WORKER]
    assert (found.moved, found.untouched, found.disturbed) == (["c"], ["a", "b"], [])


def test_a_failed_task_ends_the_story(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its cause."""
    moment = group(line("a", "worker-1", state=TaskState.FAILED, cause="no such path"))
    with pytest.raises(HerdError, match="a is FAILED: no such path"):
        play(told, monkeypatch, moment).finish()


def test_standstill_ends_the_story(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A herd in which nothing moves any more is not waited for."""
    with pytest.raises(HerdError, match="nothing has changed for 120 s"):
        play(told, monkeypatch, group(line("a", "worker-1"))).finish()


def test_what_nobody_has_told_is_in_the_sink(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that was moved after its last batch has no more to tell; the story ends when all is written."""
    told.in_sink = {"a": 1, "b": 0, "c": 1}
    still = group(line("a", "worker-1"), line("b", "worker-1", rows=2), line("c", "worker-2", rows=2))
    with pytest.raises(HerdError, match="nothing has changed"):
        play(told, monkeypatch, still).finish()
    told.in_sink["b"] = 1
    play(told, monkeypatch, still).finish()
    assert told.said == ["all rows are written"]


def test_a_dead_process_ends_the_story(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a worker that could not start."""
    told.dead = "worker-1 ended with exit code 2"
    with pytest.raises(HerdError, match="did not form a group: worker-1 ended"):
        play(told, monkeypatch, group()).gather()


def test_plain_view_says_what_is_new() -> None:
    """Steps, a new generation, each tenth of the way; nothing twice."""
    stream = io.StringIO()
    with view(stream) as shown:
        assert isinstance(shown, PlainView)
        shown.say("it begins")
        shown.show(group(line("a", "worker-1")))
        shown.show(group(line("a", "worker-1")))
    said = [text.split(" s  ")[1] for text in stream.getvalue().splitlines()]
    assert said == ["it begins", "group Stable, generation 3, 3 workers", "50 % of the rows"]


def test_live_view_shows_everybody() -> None:
    """Group, workers, tasks, rows and the whole in per cent."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with Live(console=console, auto_refresh=False) as live:
        shown = LiveView(live)
        shown.say("it begins")
        shown.show(group(line("a", "worker-1"), line("b", None, batch_id=None)))
    text = stream.getvalue()
    assert all(
        word in text for word in ("it begins", "Stable", "worker-1 (leader)", "RUNNING", "1 / 2", "50%")
    )
