"""Server processes that benchmarks ask: the manager, and what it is compared with."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DELAY_MS = 2000
"""Long enough for the members of a benchmark to be gathered in one generation."""


class Server:
    """A process that told where it listens."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)


@contextmanager
def bare() -> Iterator[Server]:
    """`bare_server.py`."""
    with serving(str(HERE / "bare_server.py")) as server:
        yield server


@contextmanager
def manager(*flags: str) -> Iterator[Server]:
    """A manager with default settings but for `flags`, on a SQLite file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite+aiosqlite:///{folder}/manager.db"
        given = ["--listen", "127.0.0.1:0", "--database", database, "--log-level", "warning"]
        given += ["--initial-rebalance-delay-ms", str(DELAY_MS)]
        with serving("-m", "cli", "manager", *given, *flags) as server:
            yield server


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """Python with `command`, which prints `listening on URL` first."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        try:
            yield Server(process, line.removeprefix("listening on ").strip())
        finally:
            process.terminate()


def many_connections() -> None:
    """Let this process and those it starts have as many as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
