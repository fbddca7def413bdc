"""What is shown while something takes its time: a bar on a terminal, lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Item = TypeVar("Item")

LOOK_EVERY_S: Final = 0.5
pause = time.sleep
"""Lets time pass between two looks."""


@dataclass(frozen=True, slots=True)
class WaitProgress:
    """How far something is that is waited for; `failed` says why it never will be there."""

    done: int
    total: int
    failed: str | None = None

    @property
    def is_reached(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.done >= self.total


def wait_for(
    look: Callable[[], WaitProgress],
    what: str,
    *,
    within_s: float,
    now: Callable[[], float] = time.monotonic,
) -> str | None:
    """Look again and again until all is done; why it is not, if it fails or takes longer than `within_s`."""
    deadline = now() + within_s
    with _bar(what) as show:
        while True:
            progress = look()
            show(progress.done, progress.total)
            if progress.failed is not None or progress.is_reached:
                return progress.failed
            if now() >= deadline:
                return f"not within {within_s:g} s: {what}, {progress.done} of {progress.total}"
            pause(LOOK_EVERY_S)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many of how many are done."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    from rich import progress  # noqa: PLC0415 - the same
    from rich.console import Console  # noqa: PLC0415 - only who sees a bar pays for it

    figures = progress.MofNCompleteColumn(), progress.TimeElapsedColumn()
    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), *figures
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(bar, completed=done, total=total)


def _lines(what: str) -> Callable[[int, int], None]:
    """A line whenever a tenth of the way is done, and at its end."""
    told = -1

    def show(done: int, total: int) -> None:
        nonlocal told
        if (tenth := 10 * done // max(total, 1)) != told:
            told = tenth
            click.echo(f"{what}: {done} of {total}", err=True)

    return show
