"""The demo's processes: a manager and its workers, each logging into the work folder."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from cli.demo.die_with_parent import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

GROUP: Final = "flights"
STOP_TIMEOUT_S: Final = 45.0
LISTENING: Final = "listening on "
SPARK_CONF: Final = (
    "spark.driver.memory=768m",
    # A minute's work does not pay for the optimising compiler: without it four JVMs need half the processor.
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


class HerdError(Exception):
    """A process of the demo died that was not meant to; the text says which, and its last words."""


class Herd:
    """Starts, kills and stops the processes; as a context manager it leaves none behind.

    With `die_with_parent`, they end even when this process is killed outright. `worker_flags` are added to
    those that every worker gets.
    """

    def __init__(self, workdir: Path, *, die_with_parent: bool, worker_flags: Sequence[str] = ()) -> None:
        self.url = ""
        self._more_worker_flags = worker_flags
        self._troubles: list[Callable[[], str | None]] = []
        self._workdir = workdir
        self._die_with_parent = die_with_parent
        self._manager: subprocess.Popen[str] | None = None
        self._workers: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start_manager(self) -> str:
        """Start a manager on a free port and a database of its own; returns its URL."""
        database = f"sqlite+aiosqlite:///{self._workdir / 'manager.db'}"
        self._manager = self._spawn(
            "manager", ["--listen", "127.0.0.1:0", "--database", database], stdout=subprocess.PIPE
        )
        line = self._manager.stdout.readline() if self._manager.stdout else ""
        if not line.startswith(LISTENING):
            raise HerdError(f"the manager did not start: {self._last_words('manager')}")
        self.url = line.removeprefix(LISTENING).strip()
        return self.url

    def start_worker(self, name: str) -> None:
        """Start a worker whose member id begins with `name`."""
        self._workers[name] = self._spawn(name, self._worker_flags(name), role="worker")

    def kill_worker(self, name: str) -> None:
        """End a worker with SIGKILL: it can say goodbye to nobody."""
        worker = self._workers.pop(name)
        worker.kill()
        worker.wait()

    def depend_on(self, trouble: Callable[[], str | None]) -> None:
        """Have `require_alive` ask that, too: what ails something else that the demo needs, or None."""
        self._troubles.append(trouble)

    def require_alive(self) -> None:
        """Raise `HerdError` when a process died by itself, or what else the demo depends on is in trouble."""
        processes = {"manager": self._manager, **self._workers}
        for name, process in processes.items():
            if process and (code := process.poll()) is not None:
                raise HerdError(f"{name} ended with exit code {code}: {self._last_words(name)}")
        for trouble in self._troubles:
            if text := trouble():
                raise HerdError(text)

    def stop(self) -> None:
        """Let the workers leave, then stop the manager; whoever takes too long is killed."""
        _terminate(self._workers.values())
        _terminate([self._manager] if self._manager else [])

    def release(self) -> None:
        """Leave everything running."""
        self._manager = None
        self._workers = {}

    def processes(self) -> dict[str, int]:
        """The process ids, by name."""
        running = {**self._workers, **({"manager": self._manager} if self._manager else {})}
        return {name: process.pid for name, process in running.items()}

    def _worker_flags(self, name: str) -> list[str]:
        return [
            *("--manager", self.url, "--group", GROUP, "--client-id", name),
            *("--checkpoint-root", str(self._workdir / "checkpoints")),
            *("--spark-master", "local[2]"),
            *(word for setting in SPARK_CONF for word in ("--spark-conf", setting)),
            *self._more_worker_flags,
        ]

    def _spawn(
        self, name: str, flags: list[str], *, role: str = "manager", stdout: int | None = None
    ) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "cli", role, *flags]
        if self._die_with_parent:
            command = [*LAUNCHER, *command]
        with self._log(name).open("a", encoding="utf-8") as log:
            return self._popen(command, log, stdout)

    def _popen(self, command: list[str], log: IO[str], stdout: int | None) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own command line
            command,
            stdin=subprocess.DEVNULL,
            stdout=log if stdout is None else stdout,
            stderr=log,
            text=True,
            cwd=self._workdir,
            start_new_session=True,  # Ctrl-C is for the demo, which then stops them in order
        )

    def _log(self, name: str) -> Path:
        return self._workdir / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = [line for line in self._log(name).read_text(encoding="utf-8").splitlines() if line.strip()]
        return f"{lines[-1] if lines else 'it said nothing'} (see {self._log(name)})"


def _terminate(processes: Iterable[subprocess.Popen[str]]) -> None:
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
        if process.poll() is None:
            process.kill()
            process.wait()
