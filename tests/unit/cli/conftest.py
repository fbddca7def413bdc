"""The command line run in this process, against managers that say what a test wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cli.main import run
from tests.unit.cli.scripted_manager import ScriptedManager, scripted_manager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def manager() -> Iterator[ScriptedManager]:
    """A scripted manager."""
    with scripted_manager() as scripted:
        yield scripted


@pytest.fixture
def other_manager() -> Iterator[ScriptedManager]:
    """A second one."""
    with scripted_manager() as scripted:
        yield scripted


@dataclass(frozen=True)
class Run:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def sparkherd(capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Run `sparkherd ARGS...` in this process."""

    def invoke(*args: str) -> Run:
        code = run(args)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return invoke
