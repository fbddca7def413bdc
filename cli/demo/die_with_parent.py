"""`python -m cli.demo.die_with_parent COMMAND ...` becomes COMMAND, and ends when its parent process does.

A demo that is itself killed with SIGKILL cannot stop its processes; on Linux the kernel does it then.
Elsewhere the command is simply run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
LAUNCHER: Final = (sys.executable, "-m", "cli.demo.die_with_parent")
"""What stands before a command that is to end so."""


def main() -> None:
    """Ask for SIGTERM at the parent's death, which outlives `exec`, and become the command."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == parent:  # else it died before we could ask
        os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
