"""The commands against a real manager and real workers, all in one process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.shell_completion import ShellComplete
from structlog.testing import capture_logs

from cli.main import run, sparkherd
from cli.views import progress
from tests.integration.herd.herd import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.integration.herd.herd import Herd

FILE = """
group: g
tasks:
- task: t-${each.n}
  for_each: {n: [1, 2, 3]}
  definition: {source: {format: rate, options: {rowsPerSecond: "${each.n}"}}, sink: {format: noop}}
"""


@dataclass(frozen=True)
class Shell:
    """Runs commands in a thread, beside the herd's event loop."""

    capsys: pytest.CaptureFixture[str]

    async def __call__(self, *args: str, code: int = 0) -> str:
        """What the command printed."""
        done = await asyncio.to_thread(run, args)
        captured = self.capsys.readouterr()
        assert done == code, captured.err
        return captured.out

    async def json(self, *args: str) -> Any:
        """The document that it printed."""
        return json.loads(await self(*args, "--json"))


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Shell]:
    """The daemons' log is kept out of what commands print."""
    monkeypatch.setattr(progress, "LOOK_EVERY_S", 0.05)
    monkeypatch.chdir(tmp_path)
    with capture_logs():
        yield Shell(capsys)


@pytest.fixture
async def herd(open_herd: Callable[..., Awaitable[Herd]], monkeypatch: pytest.MonkeyPatch) -> Herd:
    """One worker; the environment says where its manager is."""
    herd = await open_herd()
    monkeypatch.setenv("SPARKHERD_MANAGER", herd._url)
    monkeypatch.setenv("SPARKHERD_GROUP", "g")
    herd.hire("anna")
    return herd


async def worker_ids(shell: Shell) -> dict[str, str]:
    """Member ids by name."""
    listed = (await shell.json("workers", "list"))["workers"]
    return {worker["worker"].partition("-")[0]: worker["worker"] for worker in listed}


async def test_tasks_from_a_file(herd: Herd, shell: Shell, tmp_path: Path) -> None:
    """Created, waited for, changed, pruned; each time what was announced before, and twice is once."""
    (tmp_path / "tasks.yaml").write_text(FILE)
    apply = ("tasks", "apply", "-f", "tasks.yaml")
    await shell(*apply, "--wait")
    assert herd.running()["anna"] == {"t-1", "t-2", "t-3"}
    assert await shell(*apply, "--prune") == "".join(f"t-{n}: unchanged\n" for n in (1, 2, 3))
    (tmp_path / "tasks.yaml").write_text(
        FILE.replace("[1, 2, 3]", "[1, 2]").replace("noop}", "noop}, weight: 2")
    )
    announced = await shell(*apply, "--prune", "--dry-run")
    changed = "".join(f"t-{n}: would be changed\n    + weight: 2\n" for n in (1, 2))
    assert announced == f"{changed}t-3: would be deleted\n"
    assert await shell(*apply, "--prune", "--wait") == "t-1: changed\nt-2: changed\nt-3: deleted\n"
    assert [task["task"] for task in (await shell.json("tasks", "list"))["tasks"]] == ["t-1", "t-2"]
    assert await shell(*apply, "--dry-run") == "t-1: would be unchanged\nt-2: would be unchanged\n"


async def test_steering_waits_for_what_it_asks(herd: Herd, shell: Shell, tmp_path: Path) -> None:
    """When the command returns, it is so: paused, resumed, drained, balanced."""
    (tmp_path / "tasks.yaml").write_text(FILE)
    await shell("tasks", "apply", "-f", "tasks.yaml", "--wait")
    await shell("tasks", "pause", "t-1", "--wait")
    assert herd.running()["anna"] == {"t-2", "t-3"}
    await shell("tasks", "resume", "t-1", "--wait")
    assert herd.running()["anna"] == {"t-1", "t-2", "t-3"}
    herd.hire("berta")
    await herd.until(lambda: bool(herd.running()["berta"]))
    await shell("workers", "drain", (await worker_ids(shell))["anna"], "--wait")
    await shell("tasks", "apply", "-f", "tasks.yaml", "--wait")
    assert herd.running() == {"anna": set(), "berta": {"t-1", "t-2", "t-3"}}
    await shell("groups", "rebalance", "g", "--reason", "by hand", "--wait")
    newest = (await shell.json("groups", "rebalances", "g", "--limit", "1"))["rebalances"][0]
    assert newest["reason"] == "by hand"
    assert (await shell.json("groups", "describe", "g"))["generation_id"] == newest["generation_id"]


async def test_a_removed_worker_comes_back_as_another(herd: Herd, shell: Shell, tmp_path: Path) -> None:
    """It is fenced by its member id; the process joins again with a new one.

    The sink refuses what the old one may still write, so the task does not wait for its lease to end.
    """
    (tmp_path / "t.yaml").write_text(json.dumps(DEFINITION))
    await shell("tasks", "create", "t", "-f", "t.yaml", "--wait")
    before = (await worker_ids(shell))["anna"]
    await shell("workers", "remove", before)
    await herd.until(lambda: herd.starts()["t"] == 2)
    assert (await worker_ids(shell))["anna"] != before
    await shell("workers", "remove", before, code=1)


async def test_names_are_completed(herd: Herd, shell: Shell, tmp_path: Path) -> None:
    """As the manager knows them."""
    assert herd.starts() == {}
    (tmp_path / "tasks.yaml").write_text(FILE)
    await shell("tasks", "apply", "-f", "tasks.yaml")

    def complete(*words: str) -> list[str]:
        found = ShellComplete(sparkherd, {}, "sparkherd", "_X").get_completions(list(words[:-1]), words[-1])
        return [item.value for item in found]

    assert await asyncio.to_thread(complete, "groups", "describe", "") == ["g"]
    assert await asyncio.to_thread(complete, "tasks", "stop", "t-2", "") == ["t-1", "t-3"]
