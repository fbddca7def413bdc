"""tasks check: what it asks, what it shows, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.client import patience
from tests.unit.cli.answers import DEFINITION, tasks_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

CHECKS = "/v1/groups/herd/checks"
VALIDATE = "/v1/tasks/validate"
FOUND: dict[str, Any] = {
    "error": "NONE",
    "worker": "anna-1",
    "problems": [],
    "notes": [{"path": "sink.options.table", "message": "the table delays is not there: it would be made"}],
    "columns": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "double"}],
    "rows": [["UA", 2.5], [None, {"a": [1]}]],
}


@pytest.fixture
def sound(herd: ScriptedManager) -> ScriptedManager:
    """A manager that finds nothing wrong, and has a worker."""
    herd.on("POST", VALIDATE, {"error": "NONE", "problems": []})
    herd.on("POST", CHECKS, FOUND)
    return herd


@pytest.fixture
def run(sparkherd: Callable[..., Run], sound: ScriptedManager, tmp_path: Path) -> Callable[..., Run]:
    def check_file(*more: str) -> Run:
        return sparkherd("tasks", "check", "-f", tasks_file(tmp_path), "--manager", sound.url, *more)

    return check_file


def test_without_spark_the_manager_looks(run: Callable[..., Run], sound: ScriptedManager) -> None:
    """At each task of the file; no worker is asked."""
    done = run()
    assert done.out == "delays: the definition is in order\nnew: the definition is in order\n"
    assert done.code == 0
    assert {path for path, _ in sound.asked("POST")} == {VALIDATE}


@pytest.mark.parametrize("on_spark", [[], ["--on-spark"]])
def test_what_the_manager_finds_comes_first(
    run: Callable[..., Run], sound: ScriptedManager, on_spark: list[str]
) -> None:
    """With its place; no worker is troubled with it."""
    sound.on("POST", VALIDATE, {"error": "NONE", "problems": [{"path": "sql", "message": "does not parse"}]})
    done = run(*on_spark)
    assert done.code == 2
    assert done.err == "sparkherd: delays: sql: does not parse\nsparkherd: new: sql: does not parse\n"
    assert {path for path, _ in sound.asked("POST")} == {VALIDATE}


def test_a_worker_s_word_is_shown(run: Callable[..., Run], sound: ScriptedManager) -> None:
    """Task by task: columns, rows, notes."""
    done = run("--on-spark", "--rows", "2", "--from", "end", "--timeout", "5")
    assert done.code == 0
    asked = [body for path, body in sound.asked("POST") if path == CHECKS]
    assert asked[0] == {"definition": DEFINITION, "rows": 2, "begin": "end", "timeout_ms": 5000}
    assert len(asked) == 2
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[: lines.index("new: no problems, by anna-1")] == [
        "delays: no problems, by anna-1",
        *("", "COLUMN TYPE", "carrier string", "delay double"),
        *("", "carrier delay", "UA 2.5", 'null {"a": [1]}'),
        *("", "note: sink.options.table: the table delays is not there: it would be made", ""),
    ]


def test_a_problem_is_exit_code_2(run: Callable[..., Run], sound: ScriptedManager) -> None:
    """Told by task and place, on stderr; what was found beside is shown."""
    sound.on("POST", CHECKS, {**FOUND, "problems": [{"path": "sql", "message": "no column"}]})
    done = run("--on-spark")
    assert (done.code, done.err.splitlines()[0]) == (2, "sparkherd: delays: sql: no column")
    assert "delays: 1 problem, by anna-1" in done.out


def test_a_refusal_is_exit_code_1(run: Callable[..., Run], sound: ScriptedManager) -> None:
    """With its code; the other tasks are looked at all the same."""
    refusal = {"error": "NO_ELIGIBLE_WORKER", "message": "the group has no workers", "retriable": False}
    sound.on("POST", CHECKS, refusal, 409)
    done = run("--on-spark")
    assert done.code == 1
    assert done.err.splitlines() == [
        f"sparkherd: {task}: NO_ELIGIBLE_WORKER: the group has no workers" for task in ("delays", "new")
    ]
    assert [path for path, _ in sound.asked("POST")].count(CHECKS) == 2


def test_json_has_all_of_it(run: Callable[..., Run], sound: ScriptedManager) -> None:
    """Of what was refused, the error."""
    told = json.loads(run("--on-spark", "--json").out)
    assert told["group"] == "herd"
    assert told["tasks"][0] == {"task": "delays", **FOUND}
    refusal = {"error": "CHECK_TIMED_OUT", "message": "it waited for kafka", "retriable": False}
    sound.on("POST", CHECKS, refusal, 504)
    done = run("--on-spark", "--json")
    assert json.loads(done.out)["tasks"][1] == {"task": "new", **refusal}
    assert done.code == 1


def test_it_comes_again_while_workers_are_busy(
    run: Callable[..., Run], sound: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the group rebalances; not longer than a check may take."""
    busy = {"error": "TOO_MANY_CHECKS", "message": "busy", "retriable": True}
    sound.on("POST", CHECKS, busy, 409)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            sound.on("POST", CHECKS, FOUND)

    monkeypatch.setattr(patience, "sleep", pause)
    assert run("--on-spark").code == 0
    assert pauses == [patience.AGAIN_S] * 3
    sound.on("POST", CHECKS, busy, 409)
    moments = iter(range(0, 1000, 20))
    monkeypatch.setattr(patience, "monotonic", lambda: next(moments))
    done = run("--on-spark")
    assert done.code == 1
    assert "delays: TOO_MANY_CHECKS: busy" in done.err
