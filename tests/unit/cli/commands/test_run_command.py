"""`sparkherd run`: what it refuses before anything is started, and what it tells; the engine is a fake."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from tests.fakes.query_engine import FakeEngine, FakeQuery
from worker.left_out import NOTHING, LeftOut
from worker.query_engine import ignore_step
from worker.standalone import standalone_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.terminal import Terminal
    from worker.query_engine import Prepared, QuerySpec

BOUNDED = (
    "{source: {format: rate}, sink: {format: noop},"
    " trigger: {available_now: true}, restart: {max_restarts: 0}}"
)
ENDLESS = "{source: {format: rate}, sink: {format: noop}}"


class QuickEngine(FakeEngine):
    """Its bounded queries are at their end as soon as they have begun; those that sift leave rows out."""

    left_out = NOTHING

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> FakeQuery:
        """One batch, and that was all."""
        query = await super().start(spec, at, prepared)
        left_out = self.left_out if spec.definition.expect else NOTHING
        query.advance(0, left_out=left_out, total_rows=7)
        if spec.definition.trigger is not None:
            query.end()
        return query


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is logged; kept from reaching stderr, which belongs to one test only."""
    monkeypatch.setattr("cli.commands.run.configure_logging", lambda _settings: None)
    with capture_logs() as events:
        yield events


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logged: list[Any]) -> QuickEngine:
    """What runs the queries, in place of Spark; checkpoints go to the test's folder."""
    assert logged == []
    engine = QuickEngine()
    monkeypatch.setattr(
        standalone_worker,
        "run_alone",
        partial(standalone_worker.run_alone, make_engine=lambda *_: engine),
    )
    monkeypatch.chdir(tmp_path)
    return engine


@pytest.fixture
def run_file(sparkherd: Callable[..., Run], engine: FakeEngine, tmp_path: Path) -> Callable[..., Run]:
    """Run a file that has these tasks, of the group `g`."""
    assert engine.started == []

    def invoke(tasks: str, *flags: str, group: str = "group: g\n") -> Run:
        (tmp_path / "tasks.yaml").write_text(f"{group}tasks: [{tasks}]\n")
        return sparkherd("run", "-f", "tasks.yaml", *flags)

    return invoke


def test_json_tells_how_each_task_was_doing(run_file: Callable[..., Run]) -> None:
    """In the order of the file, named as in the API; the exit code says that none is FAILED."""
    began_s = int(time.time())
    done = run_file(
        f"{{task: a, definition: {BOUNDED}}}, {{task: b, definition: {ENDLESS}}}", "--once", "--json"
    )
    tasks = json.loads(done.out)["tasks"]
    assert done.code == 0
    assert [task["task"] for task in tasks] == ["a", "b"]
    assert began_s <= tasks[0].pop("token") <= time.time()
    assert tasks[0] == {
        "task": "a",
        "state": "COMPLETED",
        "batch_id": 0,
        "metrics": {"total_rows": 7},
        "cause": None,
        "restarts": 0,
    }


def test_a_failed_task_is_exit_code_1(
    run_file: Callable[..., Run], engine: FakeEngine, logged: list[Any]
) -> None:
    """The log says why; without --json nothing else goes to a pipe."""
    engine.broken["a"] = "no such path"
    done = run_file(f"{{task: a, definition: {BOUNDED}}}", "--once")
    assert (done.code, done.out) == (1, "")
    assert logged[-1]["cause"] == "no such path"


def test_for_each_runs_every_task(run_file: Callable[..., Run], engine: FakeEngine) -> None:
    """Expanded as `tasks apply` expands it, for the group that --group names."""
    tasks = f"{{task: 'a-${{each.n}}', for_each: {{n: [1, 2]}}, definition: {BOUNDED}}}"
    assert run_file(tasks, "--group", "other").code == 0
    assert {(spec.group, spec.task) for spec in engine.attempts} == {("other", "a-1"), ("other", "a-2")}


@pytest.mark.parametrize(
    ("tasks", "flags", "named"),
    [
        ("", [], "tasks.yaml has no tasks"),
        (f"{{task: a, definition: {ENDLESS}}}", ["--once"], "--once: no task of tasks.yaml comes to an end"),
        ("{task: a}", [], "tasks.yaml: tasks[0]: Object missing required field definition"),
        ("{task: a, definition: {}}", [], "a: source: is required, unless there is an entrypoint"),
        (f"{{task: a, definition: {BOUNDED}}}", ["--log-level", "loud"], "--log-level"),
        (f"{{task: a, definition: {BOUNDED}}}", ["--group", "a b"], "--group"),
        (f"{{task: a, definition: {BOUNDED}}}", ["--capacity", "2"], "--capacity"),
    ],
)
def test_what_cannot_run_starts_nothing(
    run_file: Callable[..., Run], engine: FakeEngine, tasks: str, flags: list[str], named: str
) -> None:
    """Exit code 2 and one line a problem."""
    done = run_file(tasks, *flags)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("sparkherd: ")
    assert named in done.err
    assert not engine.attempts


def test_every_problem_is_told(run_file: Callable[..., Run]) -> None:
    """Of every task, a line each."""
    bad = "{source: {format: rate}, sql: 'SELEC 1', sink: {format: noop}, wieght: 2}"
    done = run_file(f"{{task: a, definition: {bad}}}, {{task: b, definition: {{}}}}")
    assert [line.split(": ")[1:3] for line in done.err.splitlines()] == [
        ["a", "wieght"],
        ["a", "sql"],
        ["b", "source"],
    ]


def test_the_group_must_come_from_somewhere(run_file: Callable[..., Run]) -> None:
    """As with `tasks apply`."""
    done = run_file(f"{{task: a, definition: {BOUNDED}}}", group="")
    assert done.code == 2
    assert "--group" in done.err


def test_settings_come_from_the_file_too(
    run_file: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of a worker serves, and the environment."""
    (tmp_path / "herd.toml").write_text('[worker]\ncheckpoint_root = "there"\ncapacity = 2.0\n')
    run_file(f"{{task: a, definition: {BOUNDED}}}", "--config", "herd.toml")
    assert (tmp_path / "there" / "g" / "~run.json").exists()
    monkeypatch.setenv("SPARKHERD_CHECKPOINT_ROOT", "elsewhere")
    run_file(f"{{task: a, definition: {BOUNDED}}}")
    assert (tmp_path / "elsewhere" / "g" / "~run.json").exists()


def test_a_terminal_gets_a_table(run_file: Callable[..., Run], on_terminal: Callable[[], Terminal]) -> None:
    """With each task's state and figures; the cursor is there again at the end."""
    terminal = on_terminal()
    assert run_file(f"{{task: first, definition: {BOUNDED}}}").code == 0
    last = terminal.text.rpartition("TASK")[2]
    assert "first" in last
    assert "COMPLETED" in last
    assert "LEFT OUT" not in last
    assert terminal.text.rindex("\x1b[?25h") > terminal.text.rindex("\x1b[?25l")


def test_the_table_has_what_was_left_out_if_a_task_can_tell(
    run_file: Callable[..., Run], on_terminal: Callable[[], Terminal], engine: QuickEngine
) -> None:
    """Of the others there is nothing to say."""
    terminal = on_terminal()
    engine.left_out = LeftOut(4, 38, {"positive": 42})
    sifting = BOUNDED[:-1] + ", expect: [{name: positive, where: value > 0, on_violation: drop}]}"
    tasks = f"{{task: first, definition: {sifting}}}, {{task: other, definition: {BOUNDED}}}"
    assert run_file(tasks).code == 0
    header, first, other, *_ = ("TASK" + terminal.text.rpartition("TASK")[2]).splitlines()
    assert "LEFT OUT" in header
    assert "42" in first
    assert "42" not in other
