"""tasks apply and create: what they ask the manager, in which order, and what they show."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.unit.cli.answers import DEFINITION, put_answer, task, tasks_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


TASKS = "/v1/groups/herd/tasks"


def test_apply_creates_what_is_missing(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """What is there as it should be is left alone; on a pipe no progress is shown of what is soon done."""
    herd.on("PUT", TASKS, put_answer(delays="unchanged", new="created"))
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    assert (done.code, done.out, done.err) == (0, "delays: unchanged\nnew: created\n", "")
    assert [(method, path) for method, path, _ in herd.requests] == [("GET", TASKS), ("PUT", TASKS)]
    [(_, asked)] = herd.asked("PUT")
    assert [(each["task"], each["definition"], each["target"]) for each in asked["tasks"]] == [
        ("delays", DEFINITION, None),
        ("new", DEFINITION, None),
    ]
    assert (asked["delete"], asked["validate_only"]) == ([], False)


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_apply_is_all_or_nothing(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path, dry_run: list[str]
) -> None:
    """Every problem of every task is shown, each on its line, by its place in the file."""
    problems = [
        {"path": "tasks[0].definition.sql", "message": "does not parse"},
        {"path": "tasks[1].definition.sink", "message": "is required"},
        {"path": "tasks[1].definition", "message": "is no object"},
    ]
    refusal = {"error": "INVALID_REQUEST", "message": "3 problems", "problems": problems}
    herd.on("PUT", TASKS, refusal, 400)
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url, *dry_run)
    assert done.code == 2
    assert done.err.splitlines() == [
        "sparkherd: delays: sql: does not parse",
        "sparkherd: new: sink: is required",
        "sparkherd: new: is no object",
    ]
    assert done.out == ""


def test_a_refusal_of_another_kind_is_told_as_it_is(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """What concerns no task of the file has no better words than the manager's."""
    herd.on("PUT", TASKS, {"error": "GROUP_AUTHORIZATION_FAILED", "message": "not for this token"}, 403)
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    assert (done.code, done.err) == (1, "sparkherd: GROUP_AUTHORIZATION_FAILED: not for this token\n")
    assert len(herd.asked("PUT")) == 1


@pytest.mark.parametrize(
    ("fields", "most"), [({"limit_bytes": 123_456}, "takes 123,456 at most"), ({}, "takes less")]
)
def test_a_file_that_is_too_large_for_one_request(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path, fields: dict[str, int], most: str
) -> None:
    """It is not taken apart, or it would not come true as a whole; how large it is and what to do is told."""
    herd.on("PUT", TASKS, {"error": "PAYLOAD_TOO_LARGE", "message": "too large", **fields}, 413)
    done = sparkherd("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    [(_, body)] = herd.asked("PUT")
    size = len(msgspec.json.encode(body))
    assert done.code == 1
    assert f"the 2 tasks are one request of {size:,} bytes, and the manager {most}: " in done.err
    assert "--max-request-bytes" in done.err
    assert "several files" in done.err


NOT_KNOWN = "it is not known whether the tasks were applied"
GONE = {"error": "COORDINATOR_NOT_AVAILABLE", "message": "the owner gave no answer"}


def test_a_list_of_which_nobody_knows_what_became_is_told_so(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """By a manager's answer; not when it says that nothing was sent, nor of a dry run."""
    command = ("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    herd.on("PUT", TASKS, GONE, 503)
    done = sparkherd(*command)
    assert done.code == 1
    assert f"the owner gave no answer; {NOT_KNOWN}" in done.err
    assert "apply the file again" in done.err
    assert NOT_KNOWN not in sparkherd(*command, "--dry-run").err
    herd.on("PUT", TASKS, GONE | {"was_sent": False}, 503)
    done = sparkherd(*command)
    assert (done.code, NOT_KNOWN in done.err) == (1, False)


def test_a_manager_that_breaks_off_may_have_applied_the_list(
    sparkherd: Callable[..., Run], herd: ScriptedManager, other_manager: ScriptedManager, tmp_path: Path
) -> None:
    """Whatever the next manager says: the first one was asked, and has not answered."""
    herd.hangs_up_on = "PUT"
    other_manager.on("PUT", TASKS, GONE | {"was_sent": False}, 503)
    command = ("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    assert NOT_KNOWN in sparkherd(*command).err
    assert NOT_KNOWN in sparkherd(*command, "--manager", other_manager.url).err
    assert NOT_KNOWN not in sparkherd(*command, "--dry-run").err


def test_a_gateway_s_trouble_may_hide_that_the_list_was_applied(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """A proxy that has waited enough says nothing of what the manager does meanwhile."""
    herd.on("PUT", TASKS, "<html>Gateway Time-out</html>", 504)
    command = ("tasks", "apply", "-f", tasks_file(tmp_path), "--manager", herd.url)
    done = sparkherd(*command)
    assert done.code == 1
    assert f"{herd.url} answered HTTP 504, not as a manager does" in done.err
    assert NOT_KNOWN in done.err
    assert NOT_KNOWN not in sparkherd(*command, "--dry-run").err


def test_apply_dry_run_into_a_new_group(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """A dry run says what it would do; a group that is not there yet is no obstacle."""
    herd.on("GET", "/v1/groups/other/tasks", {"error": "GROUP_ID_NOT_FOUND", "message": ""}, 404)
    herd.on("PUT", "/v1/groups/other/tasks", put_answer(delays="created", new="created"))
    done = sparkherd(
        *("tasks", "apply", "-f", tasks_file(tmp_path), "--group", "other", "--dry-run", "--json"),
        *("--manager", herd.url),
    )
    assert json.loads(done.out) == {
        "group": "other",
        "dry_run": True,
        "tasks": [{"task": name, "action": "created", "changes": []} for name in ("delays", "new")],
    }
    assert [body["validate_only"] for _, body in herd.asked("PUT")] == [True]


def test_apply_without_a_group(sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path) -> None:
    """The group must come from somewhere."""
    path = tmp_path / "tasks.yaml"
    path.write_text("tasks: []")
    done = sparkherd("tasks", "apply", "-f", str(path), "--manager", herd.url)
    assert done.code == 2
    assert "--group" in done.err


@pytest.fixture
def valid(herd: ScriptedManager) -> ScriptedManager:
    """A manager that finds every definition to be in order, and takes all changes."""
    herd.on("POST", "/v1/tasks/validate", {"error": "NONE", "problems": []})
    herd.on("PUT", TASKS, put_answer(delays="changed"))
    return herd


def changed_file(tmp_path: Path) -> str:
    """`delays` with another definition and target; `late` is not there."""
    path = tmp_path / "tasks.yaml"
    path.write_text(
        'group: herd\ntasks:\n- {task: delays, target: PAUSED, definition: {entrypoint: "a:c", weight: 2}}\n'
    )
    return str(path)


def test_dry_run_shows_each_difference(
    sparkherd: Callable[..., Run], valid: ScriptedManager, tmp_path: Path
) -> None:
    """Field by field, for people and for scripts; nothing is changed."""
    command = ("tasks", "apply", "-f", changed_file(tmp_path), "--prune", "--dry-run", "--manager", valid.url)
    assert sparkherd(*command).out.splitlines() == [
        "delays: would be changed",
        '    ~ entrypoint: "a:b" -> "a:c"',
        "    + weight: 2",
        '    ~ target: "RUNNING" -> "PAUSED"',
        "late: would be deleted",
    ]
    first = json.loads(sparkherd(*command, "--json").out)["tasks"][0]
    assert first["changes"][1] == {"path": "weight", "after": 2}
    asked = [(body["validate_only"], body["delete"]) for _, body in valid.asked("PUT")]
    assert asked == [(True, ["late"])] * 2


def test_prune_deletes_what_the_file_does_not_name(
    sparkherd: Callable[..., Run], valid: ScriptedManager, tmp_path: Path
) -> None:
    """In the same request as all else, and only when asked to."""
    command = ("tasks", "apply", "-f", changed_file(tmp_path), "--manager", valid.url)
    assert sparkherd(*command).out == "delays: changed\n"
    valid.on("PUT", TASKS, put_answer(delays="changed", late="deleted"))
    assert sparkherd(*command, "--prune").out == "delays: changed\nlate: deleted\n"
    assert [body["delete"] for _, body in valid.asked("PUT")] == [[], ["late"]]
    assert valid.asked("DELETE") == []


def test_prune_with_an_empty_file_is_refused(
    sparkherd: Callable[..., Run], valid: ScriptedManager, tmp_path: Path
) -> None:
    """A file that came out empty by mistake does not end the whole group."""
    path = tmp_path / "tasks.yaml"
    path.write_text("group: herd\ntasks: []\n")
    done = sparkherd("tasks", "apply", "-f", str(path), "--prune", "--manager", valid.url)
    assert (done.code, valid.asked("PUT")) == (2, [])
    assert "all of herd" in done.err


def test_an_equal_definition_is_not_put_again(
    sparkherd: Callable[..., Run], valid: ScriptedManager, tmp_path: Path
) -> None:
    """Dates and numbers as keys are in the file as YAML has them, and at the manager as JSON has them."""
    valid.on("PUT", TASKS, put_answer(delays="unchanged"))
    path = tmp_path / "tasks.yaml"
    path.write_text("group: herd\ntasks: [{task: delays, definition: {options: {1: 2013-01-01}}}]\n")
    known = task("delays", definition={"options": {"1": "2013-01-01"}})
    valid.on("GET", "/v1/groups/herd/tasks", {"error": "NONE", "tasks": [known], "tasks_revision": 1})
    assert sparkherd("tasks", "apply", "-f", str(path), "--manager", valid.url).out == "delays: unchanged\n"


def test_create_from_a_file_and_from_stdin(
    sparkherd: Callable[..., Run], valid: ScriptedManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition goes to the manager as it is; the task is not to be there before."""
    valid.on("POST", "/v1/groups/herd/tasks", {"error": "NONE", **task("new")}, 201)
    path = tmp_path / "new.yaml"
    path.write_text("entrypoint: a:b\n")
    where = ("--group", "herd", "--manager", valid.url)
    assert sparkherd("tasks", "create", "new", "-f", str(path), *where).out == "new: created\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(DEFINITION)))
    sparkherd("tasks", "create", "new", "-f", "-", "--target", "PAUSED", *where)
    created = [body for asked, body in valid.asked("POST") if asked == "/v1/groups/herd/tasks"]
    assert created == [
        {"task": "new", "definition": DEFINITION, "target": target} for target in ("RUNNING", "PAUSED")
    ]


def test_create_with_a_bad_definition(
    sparkherd: Callable[..., Run], herd: ScriptedManager, tmp_path: Path
) -> None:
    """What the manager finds wrong is told line by line, and nothing is created."""
    problems = [{"path": "sink", "message": "is required with source"}]
    herd.on("POST", "/v1/tasks/validate", {"error": "NONE", "problems": problems})
    path = tmp_path / "new.yaml"
    path.write_text("source: {format: rate}\n")
    done = sparkherd("tasks", "create", "new", "-f", str(path), "--group", "herd", "--manager", herd.url)
    assert (done.code, done.err) == (2, "sparkherd: new: sink: is required with source\n")
    assert [asked for asked, _ in herd.asked("POST")] == ["/v1/tasks/validate"]
