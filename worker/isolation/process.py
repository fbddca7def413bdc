"""The process of a task: its start, what it prints, its end, and that nothing is left of it.

It leads a session and a process group of its own, and its JVM belongs to that group. The group is ended
before the process is reaped: until then nobody else can have its number.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec
import structlog

from telemetry.cause_ids import new_cause_id
from telemetry.relayed_logs import relay
from telemetry.scope import in_scope
from worker.isolation.deaths import OUT_OF_MEMORY, Exit
from worker.isolation.framing import LENGTH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

log = structlog.get_logger(__name__)

PROGRAM: Final = Path(__file__).with_name("bootstrap.py")
_LAST_WORDS_S: Final = 1.0
"""How long what a dead process has printed may take to be read: those it has begun may hold its pipes."""
_LONGEST_LINE: Final = 1 << 20
"""In characters; of a longer one each part is a line: the worker must not run out of memory for it."""


class TaskProcess:
    """One process, from its start until it is reaped. `kill` is for any thread."""

    def __init__(self, process: subprocess.Popen[str], task: str, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = process.pid
        self.exited: asyncio.Future[Exit] = loop.create_future()
        self._process = process
        self._task = task
        self._loop = loop
        self._lock = threading.Lock()
        self._is_reaped = False
        self._out_of_memory: str | None = None

    @classmethod
    def begin(cls, group: str, task: str, inherited: Iterable[int] = ()) -> tuple[TaskProcess, socket.socket]:
        """Start a process for a task; it keeps the file descriptors `inherited` open.

        To be called in the event loop, and so in a thread that lives as long as the worker.

        Returns:
            The process, and this end of the line to it.

        Raises:
            OSError: the machine has no room for another one.
        """
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(  # noqa: S603 - this very Python
                # what it is for is shown to who lists processes; what it has to know comes over the socket
                [sys.executable, "-P", str(PROGRAM), str(theirs.fileno()), f"{group}/{task}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                pass_fds=(theirs.fileno(), *inherited),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        started = cls(process, task, asyncio.get_running_loop())
        started._watch()
        with contextlib.suppress(ConnectionError):  # it is dead already, which is told
            ours.sendall(_paths())
        return started, ours

    def kill(self) -> None:
        """End it and whatever it has begun, in milliseconds. Never blocks for longer."""
        with self._lock:
            if not self._is_reaped:
                self._kill_group()

    def _watch(self) -> None:
        readers = [
            threading.Thread(target=in_scope(partial(self._read, *each)), name="task-output", daemon=True)
            for each in ((self._process.stdout, self._print), (self._process.stderr, self._log))
        ]
        for reader in readers:
            reader.start()
        wait = in_scope(partial(self._wait, readers))
        threading.Thread(target=wait, name="task-process", daemon=True).start()

    def _wait(self, readers: Iterable[threading.Thread]) -> None:
        self._await_end()
        with self._lock:
            self._kill_group()
            code = self._process.wait()
            self._is_reaped = True
        for reader in readers:
            reader.join(_LAST_WORDS_S)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell, Exit(code, self._out_of_memory))

    def _tell(self, end: Exit) -> None:
        if not self.exited.done():  # whoever waited for it may have been cancelled
            self.exited.set_result(end)

    def _await_end(self) -> None:
        """Without reaping it, where the system can do that: macOS has learnt it with Python 3.13."""
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored the system has reaped it
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses where all are dead
            os.killpg(self.pid, signal.SIGKILL)

    def _read(self, lines: IO[str] | None, tell: Callable[[str], None]) -> None:
        if lines is None:
            return
        with lines:
            for line in iter(partial(lines.readline, _LONGEST_LINE), ""):
                try:
                    tell(line.rstrip("\r\n"))
                except Exception:  # whoever writes to a pipe that nobody reads fails
                    log.exception(
                        "bug: what a task has printed is lost", task=self._task, cause_id=new_cause_id()
                    )

    def _print(self, line: str) -> None:
        """What Spark and the code of tasks print, each line with the name of its task.

        Not what becomes the cause of the task's failure: scripts read the output of a run.
        """
        if line.startswith(OUT_OF_MEMORY):
            self._out_of_memory = line
            return
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            sys.stdout.write(f"{self._task}: {line}\n")
            sys.stdout.flush()

    def _log(self, line: str) -> None:
        relay(line, task=self._task)


def _paths() -> bytes:
    """Where this process finds its modules, for the new one to find the same; framed as messages are."""
    paths = msgspec.json.encode([path or str(Path.cwd()) for path in sys.path])
    return len(paths).to_bytes(LENGTH_BYTES, "big") + paths
