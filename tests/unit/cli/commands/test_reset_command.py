from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from cli.exit_codes import DONE, INTERRUPTED
from tests.unit.cli.answers import task

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

RESET = {
    "error": "NONE",
    "task": "delays",
    "token": 7,
    "reset": {"number": 2, "offsets": "earliest"},
    "meaning": "Rows stay.",
}


class Terminal(StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        """For sure."""
        return True


@pytest.fixture
def resettable(manager: ScriptedManager) -> ScriptedManager:
    """A manager that resets the task `delays`."""
    manager.on("POST", "/v1/groups/herd/tasks/delays/reset", RESET)
    shown = task("delays", definition={"source": {"format": "rate"}, "sink": {"format": "memory"}})
    manager.on("GET", "/v1/groups/herd/tasks/delays", {"error": "NONE", **shown})
    return manager


def reset_command(manager: ScriptedManager, *args: str) -> tuple[str, ...]:
    """`tasks reset` of that task."""
    return "tasks", "reset", "--group", "herd", "--manager", manager.url, *args, "delays"


def test_a_reset_without_asking(sparkherd: Callable[..., Run], resettable: ScriptedManager) -> None:
    """It says what the manager says it means."""
    done = sparkherd(*reset_command(resettable, "--yes"))
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "delays: begins anew (reset 2) at the earliest offsets when it is resumed, under tokens above 7",
            "Rows stay.",
        ],
    )
    assert resettable.asked("POST") == [("/v1/groups/herd/tasks/delays/reset", {"offsets": "earliest"})]


def test_a_reset_from_given_offsets(sparkherd: Callable[..., Run], resettable: ScriptedManager) -> None:
    """Everything behind the first `=` is the value."""
    args = ("--offset", "a=b=c", "--offset", "day=", "--yes", "--json")
    done = sparkherd(*reset_command(resettable, *args))
    assert json.loads(done.out) == RESET
    assert resettable.asked("POST")[0][1] == {"offsets": {"a": "b=c", "day": ""}}


@pytest.mark.parametrize(("typed", "done"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_reset_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    sparkherd: Callable[..., Run],
    resettable: ScriptedManager,
    typed: str,
    *,
    done: bool,
) -> None:
    """On a terminal, what it means comes first, and only a yes does it."""
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    run = sparkherd(*reset_command(resettable))
    assert "The sink memory has no fence" in run.err
    assert ("begins anew" in run.out) is done
    assert (len(resettable.asked("POST")), run.code) == ((1, DONE) if done else (0, INTERRUPTED))


@pytest.mark.parametrize(
    ("args", "said"),
    [((), "--yes"), (("--yes", "--offset", "a"), "KEY=VALUE"), (("--yes", "--offset", "=a"), "KEY=VALUE")],
)
def test_a_reset_that_is_asked_for_wrongly(
    sparkherd: Callable[..., Run], resettable: ScriptedManager, args: tuple[str, ...], said: str
) -> None:
    """Without a terminal to ask on, or with an offset that is none: nothing is done."""
    done = sparkherd(*reset_command(resettable, *args))
    assert done.code == 2
    assert said in done.err
    assert resettable.asked("POST") == []


def test_tasks_status_shows_the_last_reset(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """Its number, and where the task has begun since then."""
    shown = task("delays", reset={"number": 3, "offsets": {"startingTimestamp": 5}})
    manager.on("GET", "/v1/groups/herd/tasks/delays/status", {"error": "NONE", **shown})
    out = sparkherd("tasks", "status", "delays", "--group", "herd", "--manager", manager.url).out
    assert "delays: has begun anew (reset 3) at startingTimestamp=5" in out
