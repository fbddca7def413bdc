"""The first lines of a task's process; run as a script with a file descriptor and what it is for.

It finds its modules where its worker does, which is told over the socket, and outlives that not for long.
"""

import contextlib
import ctypes
import json
import signal
import socket
import sys

_ON_DEATH_OF_PARENT = 1
"""PR_SET_PDEATHSIG of Linux's <sys/prctl.h>."""


def wake_at_death_of_parent() -> None:
    """A process that is frozen hears nothing: have it go on when its worker dies, and so end."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_ON_DEATH_OF_PARENT, signal.SIGCONT)


def paths_from(worker: socket.socket) -> list[str]:
    """Where the worker finds its modules: JSON, after four bytes of its length."""
    length = int.from_bytes(worker.recv(4, socket.MSG_WAITALL), "big")
    paths: list[str] = json.loads(worker.recv(length, socket.MSG_WAITALL))
    return paths


def main() -> int:
    """Become the process of a task; returns its exit code."""
    wake_at_death_of_parent()
    worker = socket.socket(fileno=int(sys.argv[1]))
    worker.set_inheritable(False)
    sys.path[:] = paths_from(worker)
    from worker.isolation.child import run  # noqa: PLC0415 - it is found only now

    return run(worker)


if __name__ == "__main__":
    sys.exit(main())
