"""The process of a task, with another program in it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
import structlog

from tests.fakes.turns import PATIENCE_S
from worker.isolation import process as process_module
from worker.isolation.deaths import Exit
from worker.isolation.process import TaskProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a process run this code."""
    path = tmp_path / "program.py"
    monkeypatch.setattr(process_module, "PROGRAM", path)

    def write(code: str) -> None:
        path.write_text(code)

    return write


async def lived() -> Exit:
    """One process, from its start to its end; how that was."""
    process, line = TaskProcess.begin("g", "t")
    with line:
        return await asyncio.wait_for(process.exited, PATIENCE_S)


@pytest.fixture
def _sigchld_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("_sigchld_ignored")
async def test_its_end_is_told_where_sigchld_is_ignored(program: Callable[[str], None]) -> None:
    """As it is below some supervisors: the system reaps the process then, and nobody knows its code."""
    program("")
    assert await lived() == Exit(0)


async def test_a_line_of_any_length_takes_little_memory(
    program: Callable[[str], None], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker would die of it, and with it the other tasks: it is told in parts."""
    monkeypatch.setattr(process_module, "_LONGEST_LINE", 10)
    program("print('0123456789' * 2 + 'end')")
    await lived()
    assert capfd.readouterr().out == "t: 0123456789\nt: 0123456789\nt: end\n"


async def test_what_cannot_be_told_does_not_end_the_reading(
    program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would fail when it prints the next line."""

    def relay(line: str, **known: str) -> None:
        if line == "odd":
            raise TypeError(line)
        structlog.get_logger().info(line, **known)

    monkeypatch.setattr(process_module, "relay", relay)
    program("import sys; sys.stderr.write('odd\\neven\\n')")
    with structlog.testing.capture_logs() as logs:
        await lived()
    assert [each["event"] for each in logs] == ["bug: what a task has printed is lost", "even"]
