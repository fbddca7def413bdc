"""What the shell is told when somebody presses Tab."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import ShellComplete

from cli.main import sparkherd as root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


def complete(*words: str) -> list[str]:
    """What may stand in place of the last of the words."""
    shell = ShellComplete(root, {}, "sparkherd", "_SPARKHERD_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_commands_and_options() -> None:
    """Without any manager."""
    assert complete("gr") == ["groups"]
    assert "rebalances" in complete("groups", "re")
    assert complete("tasks", "apply", "--pr") == ["--prune"]


def test_names_come_from_the_manager(herd: ScriptedManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups, tasks and workers; the group and the manager may come from the environment."""
    monkeypatch.setenv("SPARKHERD_MANAGER", herd.url)
    assert complete("groups", "describe", "h") == ["herd"]
    assert complete("tasks", "list", "--group", "") == ["herd"]
    assert complete("tasks", "pause", "--group", "herd", "") == ["delays", "late"]
    assert complete("workers", "drain", "--group", "herd", "w") == ["w-1"]
    monkeypatch.setenv("SPARKHERD_GROUP", "herd")
    assert complete("tasks", "describe", "la") == ["late"]


def test_a_named_task_is_not_named_again(herd: ScriptedManager) -> None:
    """Of several tasks each makes sense once."""
    assert complete("tasks", "stop", "--manager", herd.url, "--group", "herd", "late", "") == ["delays"]


def test_no_group_no_tasks(herd: ScriptedManager) -> None:
    """Nobody is asked for the tasks of nothing."""
    assert complete("tasks", "pause", "--manager", herd.url, "") == []
    assert herd.requests == []


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Somebody who takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_no_manager_no_names(
    silent_port: int,
    herd: ScriptedManager,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with the manager, the person at the keyboard sees nothing of it."""
    monkeypatch.setattr("cli.options.completers.TIMEOUT_S", 0.05)
    assert complete("groups", "describe", "--manager", "http://127.0.0.1:1", "") == []
    assert complete("groups", "describe", "--manager", f"http://127.0.0.1:{silent_port}", "") == []
    assert complete("groups", "describe", "--manager", "nonsense", "") == []
    assert complete("tasks", "pause", "--manager", herd.url, "--group", "nobody", "") == []
    herd.on("GET", "/v1/groups", "<html>")
    assert complete("groups", "describe", "--manager", herd.url, "") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(sparkherd: Callable[..., Run], shell: str) -> None:
    """With a line on how it is put to use, and click's own entry into this command."""
    done = sparkherd("completion", shell)
    assert done.code == 0
    assert done.out.startswith("# ")
    assert f"_SPARKHERD_COMPLETE={shell}_complete" in done.out
