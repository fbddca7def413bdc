"""How much of its memory a process takes: what is resident, by what the machine or its container has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")
LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""Of the container, by the second and the first version of control groups."""


def memory_percent(proc: Path = PROC, cgroups: Path = CGROUPS) -> float | None:
    """The resident memory of this process by what there is for it, in percent; None where nobody tells."""
    limits = [limit for limit in (_total(proc), *(_number(cgroups / each) for each in LIMITS)) if limit]
    resident = _resident(proc)
    return None if resident is None or not limits else 100 * resident / min(limits)


def _resident(proc: Path) -> int | None:
    words = _text(proc / "self" / "statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if len(words) > 1 else None


def _total(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _number(path: Path) -> int | None:
    """None for `max`, too."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
