"""Which JVMs there are, by what they are for: each is a worker's, or with `--isolate` a task's."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.group_view import GROUP
from tests.soak.readings import descendants, named

if TYPE_CHECKING:
    from collections.abc import Iterator


def jvms(worker: str, pid: int) -> Iterator[tuple[str, int]]:
    """Of the worker of that name, which is the process `pid`: what each is for, and its own process."""
    for child in _children(pid):
        task = _task(child)
        for each in named([child, *descendants(child)], "java"):
            yield worker if task is None else task, each


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return list(map(int, chain(*lists)))
    return []


def _task(pid: int) -> str | None:
    """Whose process it is, if it is that of a task; its command line says so."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        group, _, task = (words[-2] if len(words) > 1 else "").partition("/")
        return task if group == GROUP else None
    return None
