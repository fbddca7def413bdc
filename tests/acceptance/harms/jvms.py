"""Which JVMs there are, by what they are for: each is a worker's, or with `--isolate` a task's."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.acceptance.group_view import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPARK: Final = "org.apache.spark.deploy.SparkSubmit"
"""In the command line of a JVM with a Spark in it, and of what it begins, as long as that is nothing else."""


def jvms(worker: str, pid: int) -> Iterator[tuple[str, int]]:
    """Of the worker of that name, which is the process `pid`: what each is for, and its own process."""
    for child in _children(pid):
        task = _task(child)
        for each in _sparks(child):
            yield worker if task is None else task, each


def _sparks(pid: int) -> list[int]:
    """The process, or those below it; what a JVM has begun is none."""
    if _SPARK in _words(pid):
        return [pid]
    return [each for child in _children(pid) for each in _sparks(child)]


def is_over(pid: int) -> bool:
    """Whether a process has ended: that it is not found among the children of another one says nothing.

    The kernel may leave some out of that list while others come and go.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return list(map(int, chain(*lists)))
    return []


def _task(pid: int) -> str | None:
    """Whose process it is, if it is that of a task; its command line says so."""
    group, _, task = ["", *_words(pid)][-1].partition("/")
    return task if group == GROUP else None


def _words(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    return []
