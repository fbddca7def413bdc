"""The processes of Python that Spark has started: those that descend from its JVM."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC: Final = Path("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PYTHON: Final = "python"


class Processes(NamedTuple):
    """How many there are, and the bytes of memory that they have; shared ones count for each."""

    number: int
    resident_bytes: int


class _Process(NamedTuple):
    parent: int
    name: str
    resident_bytes: int


def python_below(pid: int, proc: Path = PROC) -> Processes | None:
    """Those below the process `pid`, by the system's own files; None where there are none such."""
    found = dict(_all(proc))
    if not found:
        return None
    below = [found[each] for each in _descendants(pid, found) if found[each].name.startswith(_PYTHON)]
    return Processes(len(below), sum(each.resident_bytes for each in below))


def _descendants(pid: int, found: dict[int, _Process]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for each, process in found.items():
        children.setdefault(process.parent, []).append(each)
    waiting = [*children.get(pid, ())]
    while waiting:
        each = waiting.pop()
        waiting += children.get(each, ())
        yield each


def _all(proc: Path) -> Iterator[tuple[int, _Process]]:
    """One that ends while it is looked at is passed over."""
    try:
        names = os.listdir(proc)  # noqa: PTH208 - names are enough, of thousands
    except OSError:
        return
    for name in names:
        if name.isdecimal():
            try:
                stat = (proc / name / "stat").read_bytes()
            except OSError:
                continue
            yield int(name), _parse(stat.decode(errors="replace"))


def _parse(stat: str) -> _Process:
    """A line of `proc/PID/stat`; its second field, the name, is in brackets and may have any character."""
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    return _Process(int(fields[1]), head.partition("(")[2], int(fields[21]) * _PAGE)
