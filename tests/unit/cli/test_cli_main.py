"""The command as a whole: what it prints when all is not well, and how it exits."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


def test_help_lists_the_commands(sparkherd: Callable[..., Run]) -> None:
    """`--help` is an answer, not an error."""
    done = sparkherd("--help")
    assert done.code == 0
    assert all(name in done.out for name in ("manager", "worker", "groups", "tasks", "workers", "demo"))


@pytest.mark.parametrize(
    "name", ["manager", "worker", "groups list", "tasks apply", "tasks pause", "workers list", "demo"]
)
def test_each_command_has_help(sparkherd: Callable[..., Run], name: str) -> None:
    """Every command can be asked what it does."""
    done = sparkherd(*name.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert f"sparkherd {name}" in done.out


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["frobnicate"], "'frobnicate'"),
        (["groups", "list", "--frobnicate"], "--frobnicate"),
        (["groups", "list", "--manager", "foo"], "--manager"),
        (["tasks", "list"], "--group"),
        (["tasks", "pause", "--group", "g"], "TASK"),
        (["manager", "--listen", "nowhere"], "--listen"),
        (["manager", "--initial-rebalance-delay-ms", "-1"], "--initial-rebalance-delay-ms"),
        (["worker"], "--group"),
        (["worker", "--group", "g", "--session-timeout-ms", "x"], "--session-timeout-ms"),
        (["worker", "--group", "g", "--label", "x"], "--label"),
        (["manager", "--config", "missing.toml"], "missing.toml"),
        (["demo", "--flights", "0"], "--flights"),
    ],
)
def test_usage_errors(sparkherd: Callable[..., Run], args: list[str], named: str) -> None:
    """A usage error is exit code 2 and one line that names what is wrong."""
    done = sparkherd(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("sparkherd: ")
    assert len(done.err.splitlines()) == 1
    assert named in done.err


def test_refusals_fail(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """What the manager refuses is exit code 1, with the error's code."""
    answer = {"error": "GROUP_ID_NOT_FOUND", "message": "there is no group herd", "retriable": False}
    manager.on("GET", "/v1/groups/herd", answer, 404)
    done = sparkherd("groups", "describe", "herd", "--manager", manager.url)
    assert (done.code, done.err) == (1, "sparkherd: GROUP_ID_NOT_FOUND: there is no group herd\n")


def test_manager_not_there(sparkherd: Callable[..., Run]) -> None:
    """Nobody at that address is exit code 1, with the address and what to do."""
    done = sparkherd("groups", "list", "--manager", "http://127.0.0.1:1")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "http://127.0.0.1:1" in done.err
    assert "sparkherd manager" in done.err


def test_manager_from_the_environment(
    sparkherd: Callable[..., Run], manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPARKHERD_MANAGER stands in for --manager."""
    manager.on("GET", "/v1/groups", {"error": "NONE", "groups": []})
    monkeypatch.setenv("SPARKHERD_MANAGER", manager.url)
    assert sparkherd("groups", "list", "--json").out == '{\n  "error": "NONE",\n  "groups": []\n}\n'


def test_module_is_the_command() -> None:
    """`python -m cli` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("sparkherd")
