"""The daemons as processes, started through the command line as a user would."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from cli.client.admin_client import AdminClient
from cli.demo.herd import SPARK_CONF

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STOP_TIMEOUT_S = 180.0
SPARKHERD = ("-m", "cli")
SESSION_MS = 120_000
"""Longer than any manager takes to start again, on a machine that is busy with four JVMs."""


def sparkherd(
    *args: str, cwd: Path, timeout_s: float = 240.0, program: Sequence[str] = SPARKHERD
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `program` is what Python runs, `sparkherd` or a script."""
    return subprocess.run(
        [sys.executable, *program, *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def worker_args(name: str, manager: str, group: str, folder: Path, remote: str | None = None) -> list[str]:
    """A worker with patience, and a small Spark session or one on the Spark Connect server `remote`.

    It joins without warming its Spark, as there are a hundred of them in the tests; the soak's do.
    """
    args = ["worker", "--manager", manager, "--group", group, "--client-id", name]
    args += ["--checkpoint-root", str(folder / "checkpoints")]
    own = ["--spark-master", "local[2]", *(word for each in SPARK_CONF for word in ("--spark-conf", each))]
    args += ["--spark-remote", remote] if remote else own
    return [*args, "--session-timeout-ms", str(SESSION_MS), "--warm-up-timeout-ms", "0"]


class Daemon:
    """One process, its log in a file of its own; `program` is what Python runs, `sparkherd` or a script."""

    def __init__(self, name: str, args: list[str], folder: Path, program: Sequence[str] = SPARKHERD) -> None:
        self.name = name
        self._program = program
        self._args = args
        self._folder = folder
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        """Start it, anew too: the log goes on."""
        with (self._folder / f"{self.name}.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self._program, *self._args],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self.process

    def log(self) -> str:
        """All it has logged."""
        return (self._folder / f"{self.name}.log").read_text()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self._gone()

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def stop(self) -> None:
        """However it can be done."""
        try:
            if self.process.poll() is None:
                self.terminate()
        except subprocess.TimeoutExpired:
            self.kill()
        finally:
            self._close(self.process.stdout)

    def _gone(self) -> int:
        code = self.process.wait(STOP_TIMEOUT_S)
        self._close(self.process.stdout)
        return code

    @staticmethod
    def _close(stream: IO[str] | None) -> None:
        if stream is not None:
            stream.close()


class Manager(Daemon):
    """A manager on a database file, or on `database`; started again, it takes the port it had."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        name: str = "manager",
        database: str | None = None,
        program: Sequence[str] = SPARKHERD,
    ) -> None:
        self.url = ""
        self.database = folder / "manager.db"
        args = ["manager", "--database", database or f"sqlite+aiosqlite:///{self.database}", *flags]
        super().__init__(name, args, folder, program)

    def launch(self) -> subprocess.Popen[str]:
        """Start it; `listens` waits until it serves."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        self._args = [*self._args, "--listen", listen]
        return super().start()

    def start(self) -> subprocess.Popen[str]:
        """Start it and wait until it serves."""
        process = self.launch()
        self.listens()
        return process

    def listens(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://"), self.log()
        self.url = line.removeprefix("listening on ").strip()

    def client(self) -> AdminClient:
        """An admin's client of it."""
        return AdminClient([self.url])


@dataclass
class Herd:
    """A manager and its workers, each stopped at the end."""

    folder: Path
    manager: Manager
    workers: dict[str, Daemon] = field(default_factory=dict)

    def start_worker(
        self,
        name: str,
        *flags: str,
        group: str = "herd",
        manager: str | None = None,
        remote: str | None = None,
        program: Sequence[str] = SPARKHERD,
    ) -> Daemon:
        """A worker with a small Spark session, and patience with a manager that starts on a busy machine.

        It is to find its manager at the URL `manager` if that is another than the manager's own, and to run
        its queries on the Spark Connect server `remote` if there is one.
        """
        args = worker_args(name, manager or self.manager.url, group, self.folder, remote)
        self.workers[name] = Daemon(name, [*args, *flags], self.folder, program)
        return self.workers[name]

    @property
    def daemons(self) -> list[Daemon]:
        """Everything that runs."""
        return [self.manager, *self.workers.values()]

    def stop(self) -> None:
        """Workers first, so that they can leave."""
        for daemon in [*self.workers.values(), self.manager]:
            daemon.stop()
