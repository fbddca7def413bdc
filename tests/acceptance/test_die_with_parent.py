"""The demo's processes end with the demo, even when it is killed outright."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "cli.demo.die_with_parent", *sys.argv[1:]])
print(child.pid, flush=True)
child.wait()
"""
CHILD = "import os; print(os.getpid(), flush=True); os.read(0, 1)"


def test_a_process_of_the_demo_dies_with_its_parent(tmp_path: Path) -> None:
    """SIGKILL of the parent is SIGTERM for the child."""
    command = [sys.executable, "-c", PARENT, sys.executable, "-c", CHILD]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = {int(parent.stdout.readline()), int(parent.stdout.readline())}
        assert len(pids) == 1  # the wrapper has become the command
        child = os.pidfd_open(pids.pop())
        parent.kill()
        assert select.select([child], [], [], 120)[0] == [child]
        os.close(child)
