from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

PATH = "/v1/transfers"


def shown(step: str, **more: Any) -> dict[str, Any]:
    """A transfer of one task, as the manager shows it."""
    return {
        "error": "NONE",
        "id": "move",
        "from": "a",
        "to": "b",
        "step": step,
        "started_at_ms": 1,
        "changed_at_ms": 1,
        "by": "anna",
        "cause": None,
        "tasks": [{"task": "t", "to_task": "u", "step": step}],
        **more,
    }


def transfer(manager: ScriptedManager, *args: str) -> tuple[str, ...]:
    return ("tasks", "transfer", "--manager", manager.url, "--from", "a", "--to", "b", "--id", "move", *args)


def test_a_transfer_begins(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """Everything that was said is asked for; the answer says by which id it is known."""
    manager.on("POST", PATH, shown("STOPPING"), 202)
    done = sparkherd(*transfer(manager, "--rename", "t=u", "--allow-unplaced", "t"))
    assert (done.code, done.out) == (0, "transfer move of 1 tasks from a to b has begun\n")
    [(_, asked)] = manager.asked("POST")
    assert asked == {
        "from": "a",
        "to": "b",
        "tasks": ["t"],
        "rename": {"t": "u"},
        "allow_unplaced": True,
        "validate_only": False,
        "id": "move",
    }


def test_a_dry_run_only_checks(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """It says so, and waits for nothing."""
    manager.on("POST", PATH, shown("STOPPING", id=None), 202)
    done = sparkherd(*transfer(manager, "--dry-run", "--wait", "t"))
    assert (done.code, done.out) == (0, "1 tasks of a could go to b\n")
    assert manager.asked("POST")[0][1]["validate_only"] is True
    assert manager.asked("GET") == []


@pytest.mark.parametrize(("step", "code"), [("DONE", 0), ("CANCELLED", 1)])
def test_it_is_waited_for(
    sparkherd: Callable[..., Run], manager: ScriptedManager, step: str, code: int
) -> None:
    """One that is cancelled is a failure, with its cause."""
    manager.on("POST", PATH, shown("STOPPING"), 202)
    manager.on("GET", f"{PATH}/move", shown(step, cause="why not"))
    done = sparkherd(*transfer(manager, "--wait", "t"))
    assert done.code == code
    assert ("it was cancelled: why not" in done.err) is bool(code)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("t", "--rename: expected OLD=NEW, got 't'"),
        ("t=a/b", "--rename t=a/b: a task's name is 1 to 249 characters of [A-Za-z0-9._-]"),
    ],
)
def test_a_new_name_that_is_none_is_refused(
    sparkherd: Callable[..., Run], manager: ScriptedManager, given: str, said: str
) -> None:
    """Before anything is asked for; the message names the option."""
    done = sparkherd(*transfer(manager, "--rename", given, "t"))
    assert done.code == 2
    assert said in done.err
    assert manager.requests == []


def test_transfers_are_listed(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """As a table, or what the manager answers; group and state go into the query."""
    manager.on("GET", PATH, {"error": "NONE", "transfers": [shown("GIVEN")]})
    listed = sparkherd("transfers", "list", "--manager", manager.url, "--group", "a", "--active")
    assert listed.out.splitlines()[1].split()[:6] == ["move", "a", "b", "1", "GIVEN", "anna"]
    assert manager.asked("GET")[0][0] == f"{PATH}?group=a&state=active"
    raw = sparkherd("transfers", "list", "--manager", manager.url, "--json")
    assert json.loads(raw.out)["transfers"][0]["id"] == "move"


def test_one_is_shown_with_its_tasks(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """Each with its name in the other group."""
    manager.on("GET", f"{PATH}/move", shown("STOPPED"))
    done = sparkherd("transfers", "show", "--manager", manager.url, "move")
    assert done.out.splitlines()[-1].split() == ["t", "u", "STOPPED"]


def test_one_is_cancelled(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """Or it is too late, which is said with its code."""
    manager.on("POST", f"{PATH}/move/cancel", shown("CANCELLED"))
    cancel = "transfers", "cancel", "--manager", manager.url, "move"
    assert sparkherd(*cancel).out == "transfer move is cancelled: the tasks go on in a\n"
    refused = {"error": "TASK_TRANSFERRED", "message": "too late", "retriable": False}
    manager.on("POST", f"{PATH}/move/cancel", refused, 409)
    done = sparkherd(*cancel)
    assert (done.code, done.err) == (1, "sparkherd: TASK_TRANSFERRED: too late\n")
