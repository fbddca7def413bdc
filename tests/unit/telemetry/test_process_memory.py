"""The share of its memory that a process takes, by files as Linux has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from telemetry.process_memory import memory_percent

if TYPE_CHECKING:
    from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("limits", "percent"),
    [
        ({}, 25.0),
        ({"memory.max": "max\n"}, 25.0),
        ({"memory.max": f"{200 * PAGE}\n"}, 50.0),
        ({"memory/memory.limit_in_bytes": f"{125 * PAGE}\n"}, 80.0),
        ({"memory.max": "9223372036854771712\n"}, 25.0),
    ],
)
def test_the_least_of_what_there_is_counts(tmp_path: Path, limits: dict[str, str], percent: float) -> None:
    """The machine's, or the container's, by either version of control groups."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "statm").write_text("900 100 50 1 0 400 0\n")
    (tmp_path / "meminfo").write_text(f"MemTotal:  {400 * PAGE // 1024} kB\nMemFree: 1 kB\n")
    for name, text in limits.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert memory_percent(tmp_path, tmp_path / "cgroup") == percent


def test_where_nobody_tells_it_is_not_known(tmp_path: Path) -> None:
    """As on other systems; here it is."""
    assert memory_percent(tmp_path, tmp_path) is None
    assert 0.0 < (memory_percent() or 0.0) < 100.0
