"""What docs/sinks.md says: the sink that it builds keeps the contract, as it is tried there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.processes
PAGE = (Path(__file__).parents[3] / "docs" / "sinks.md").read_text()


def block(name: str) -> str:
    """The code on the page whose first line names its file."""
    lines = PAGE.partition(f"    # {name}\n")[2].splitlines()
    end = next(at for at, line in enumerate(lines) if line and not line.startswith("    "))
    return dedent("\n".join(lines[:end]))


def test_the_sink_on_the_page_keeps_the_contract(tmp_path: Path) -> None:
    """In some sixty lines, by the test beside it, with nothing of this repository's tests around."""
    for name in ("ledger.py", "test_ledger.py"):
        (tmp_path / name).write_text(block(name))
    assert len([line for line in block("ledger.py").splitlines() if line.strip()]) <= 60
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ledger.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "12 passed" in run.stdout
