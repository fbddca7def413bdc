"""What docs/sinks.md says: the sink that it builds keeps the contract, as it is tried there."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from sparkherd import SinkContract

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sinks.md").read_text()
GROUP = 'project.entry-points."sparkherd.sinks"'


FORMAT_OF = """
from definition.document import parse_definition
sink = b'{"format": "ledger", "options": {"path": "x"}}'
found = parse_definition(b'{"source": {"format": "rate"}, "sink": %s}' % sink)
print(found.is_fenced, found.sink.fenced.writer)
"""


def block(first: str) -> str:
    """The code on the page after the line that it begins with."""
    lines = PAGE.partition(f"    {first}\n")[2].splitlines()
    end = next(at for at, line in enumerate(lines) if line and not line.startswith("    "))
    return dedent("\n".join(lines[:end]))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with what is on the page, as if it were installed: its code, and the entry point."""
    for name in ("ledger.py", "test_ledger.py"):
        (tmp_path / name).write_text(block(f"# {name}"))
    offered = tomllib.loads(block(f"[{GROUP}]")).items()
    info = tmp_path / "ledger-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger\nVersion: 1\n")
    lines = "\n".join(f"{name} = {place}" for name, place in offered)
    (info / "entry_points.txt").write_text(f"[sparkherd.sinks]\n{lines}\n")
    return tmp_path


def run_python(package: Path, *arguments: str) -> str:
    """What Python prints where that package is installed."""
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=package,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_entry_point_on_the_page_leads_to_the_format(package: Path) -> None:
    """Word for word: a definition that names it is sound, and fenced by the sink on the page."""
    assert run_python(package, "-c", FORMAT_OF).split() == ["True", "ledger:LedgerSink"]


def test_the_sink_on_the_page_keeps_the_contract(package: Path) -> None:
    """In some sixty lines, by the test beside it, with nothing of this repository's tests around."""
    assert len([line for line in block("# ledger.py").splitlines() if line.strip()]) <= 60
    told = run_python(package, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ledger.py")
    promised = [name for name in dir(SinkContract) if name.startswith("test_")]
    assert f"{len(promised)} passed" in told
