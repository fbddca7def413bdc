"""The demo's story, played on a herd that does as it is told."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.live import Live

from cli.demo.herd import HerdError
from cli.demo.lag_history import LagHistory
from cli.demo.plan import DemoTask, Plan
from cli.demo.snapshot import Snapshot, TaskLine
from cli.demo.story import BROKER_AWAY_S, NEW_WORKER, Story
from cli.demo.view import LiveView, PlainView, view
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAN = Plan(tuple(DemoTask(name, {}, "flights", (name,), 2) for name in "abc"), "carrier", 6)


def line(name: str, owner: str | None, token: int = 1, **changes: Any) -> TaskLine:
    """A running task that has written one of its two rows."""
    fields: dict[str, Any] = {
        "state": TaskState.RUNNING,
        "batch_id": 0,
        "rows": 1,
        "rows_in_all": 2,
        "lag": None,
        "cause": None,
    }
    return TaskLine(name=name, owner=owner, token=token, **{**fields, **changes})


def group(*tasks: TaskLine, workers: Iterable[str] = ("worker-1", "worker-2", "worker-3")) -> Snapshot:
    """A stable group with those tasks."""
    names = tuple(workers)
    lines = {task.name: task for task in tasks}
    return Snapshot("Stable", 3, names[0], names, lines, rows_in_all=2 * len(tasks))


class Told:
    """A herd that is told whom to kill and start, and a view that keeps what it is told."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.started: list[str] = []
        self.said: list[str] = []
        self.shown: list[Snapshot] = []
        self.dead: str | None = None

    def kill_worker(self, name: str) -> None:
        self.killed.append(name)

    def start_worker(self, name: str) -> None:
        self.started.append(name)

    def require_alive(self) -> None:
        if self.dead:
            raise HerdError(self.dead)

    def by_task(self) -> dict[str, int]:
        return {}

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def show(self, snapshot: Snapshot, _: LagHistory) -> None:
        self.shown.append(snapshot)


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
    return Story(told, None, PLAN, told, told)  # type: ignore[arg-type]  # doubles of herd, view and sink


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


def test_the_story_ends_when_all_is_written(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rows of the sink, whatever a task has told of its batches."""
    nearly = group(line("a", "worker-1", rows=2), line("b", "worker-1", rows=1))
    done = group(line("a", "worker-1", rows=2), line("b", "worker-1", rows=2, batch_id=None))
    play(told, monkeypatch, nearly, done).finish()
    assert told.shown == [nearly, done]
    assert told.said == ["all rows are written"]


class Topic:
    """One whose flights arrive as they are asked for, and whose broker answers at the third time."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broker = self
        self._shares = iter((0.5, 0.5, 0.6, 0.6))
        self._answers = iter((False, False, True))

    @property
    def share_produced(self) -> float:
        return next(self._shares)

    def takes_requests(self) -> bool:
        self.done.append("ask")
        return next(self._answers)

    def go_on(self) -> None:
        self.done.append("go on")

    def kill_broker(self) -> None:
        self.done.append("kill")

    def launch_broker(self) -> None:
        self.done.append("launch")


def test_the_broker_is_killed_while_flights_arrive(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before some of the second half are there; it is waited for until it answers."""
    topic = Topic()
    found = play(told, monkeypatch, group(line("a", "worker-1"))).restart_broker(topic)  # type: ignore[arg-type]  # a double
    assert topic.done == ["go on", "kill", "launch", "ask", "ask", "ask"]
    assert found.share_produced == 0.6
    assert found.seconds > BROKER_AWAY_S


def test_the_story_waits_until_no_task_is_behind(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of which nobody knows is not one that has read all; what was behind at most is told."""
    moments = [
        group(line("a", "worker-1", lag=4000), line("b", "worker-1", lag=1000)),
        group(line("a", "worker-1", lag=0), line("b", "worker-1", lag=None)),
        group(line("a", "worker-1", lag=0), line("b", "worker-1", lag=0)),
    ]
    story = play(told, monkeypatch, *moments)
    story.catch_up()
    assert told.shown == moments
    assert story.lags.most == 5000
    assert told.said[0].startswith("lag 0, at most 5,000  █")


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
        shown.show(group(line("a", "worker-1")), LagHistory())
        shown.show(group(line("a", "worker-1")), LagHistory())
    said = [text.split(" s  ")[1] for text in stream.getvalue().splitlines()]
    assert said == ["it begins", "group Stable, generation 3, 3 workers", "50 % of the rows"]


def test_live_view_shows_everybody() -> None:
    """Group, workers, tasks, rows and the whole in per cent."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with Live(console=console, auto_refresh=False) as live:
        shown = LiveView(live)
        shown.say("it begins")
        shown.show(group(line("a", "worker-1"), line("b", None, batch_id=None)), LagHistory())
    text = stream.getvalue()
    assert all(
        word in text for word in ("it begins", "Stable", "worker-1 (leader)", "RUNNING", "1 / 2", "50%")
    )


def test_views_draw_the_lag() -> None:
    """Of all tasks over time, and in the table of each; nothing of it where no task has any."""
    lags = LagHistory()
    lags.add(0.0, 0)
    lags.add(1.0, 1234)
    now = group(line("a", "worker-1", lag=1234), line("b", "worker-2", rows_in_all=None))
    plain, live = io.StringIO(), io.StringIO()
    PlainView(plain).show(now, lags)
    with Live(console=Console(file=live, force_terminal=True, width=100), auto_refresh=False) as drawn:
        LiveView(drawn).show(now, lags)
    assert "50 % of the rows, lag 1,234  ▁█" in plain.getvalue()
    assert all(text in live.getvalue() for text in ("lag", "▁█", "1,234", "1 / 2"))
