"""Server processes that benchmarks ask: the manager, and what it is compared with."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trustme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELAY_MS = 2000
"""Long enough for the members of a benchmark to be gathered in one generation."""
PATIENCE_S = 60.0
"""For a server to come up."""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A process that told where it listens, and how its clients get in."""

    process: subprocess.Popen[str]
    url: str
    tls: ssl.SSLContext | None = None
    token: str = ""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of a server on this machine: its files, and what makes its clients trust it."""

    cert: Path
    key: Path
    trust: ssl.SSLContext


@contextmanager
def certificate() -> Iterator[Certificate]:
    """One of an authority that is made for it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with tempfile.TemporaryDirectory() as folder:
        made = Certificate(Path(folder) / "cert.pem", Path(folder) / "key.pem", trust)
        issued.cert_chain_pems[0].write_to_path(made.cert)
        issued.private_key_pem.write_to_path(made.key)
        yield made


@contextmanager
def bare(secured: Certificate | None = None) -> Iterator[ServerProcess]:
    """`peers/bare_server.py`."""
    files = [str(secured.cert), str(secured.key)] if secured else []
    with serving("-m", "benchmarks.peers.bare_server", *files) as server:
        yield replace(server, tls=secured.trust) if secured else server


@contextmanager
def manager(*flags: str, secured: Certificate | None = None, token: bool = False) -> Iterator[ServerProcess]:
    """A manager with default settings but for `flags`, on a SQLite file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        database = ["--database", f"sqlite+aiosqlite:///{folder}/manager.db"]
        given = ["--listen", "127.0.0.1:0", *database, "--log-level", "warning"]
        given += ["--initial-rebalance-delay-ms", str(DELAY_MS)]
        if secured:
            given += ["--tls-cert", str(secured.cert), "--tls-key", str(secured.key)]
        shown = _sparkherd("tokens", "create", "--role", "worker", "bench", *database) if token else ""
        with serving("-m", "cli", "manager", *given, *flags) as server:
            yield replace(server, tls=secured.trust if secured else None, token=shown)


@contextmanager
def serving(*command: str) -> Iterator[ServerProcess]:
    """Python with `command`, which prints `listening on URL` first."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        try:
            yield ServerProcess(process, line.removeprefix("listening on ").strip())
        finally:
            process.terminate()


def _sparkherd(*command: str) -> str:
    """What the command prints."""
    done = subprocess.run([sys.executable, "-m", "cli", *command], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def raise_limit_of_connections() -> None:
    """Let this process and those it starts have as many as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def peer_process(
    command: list[str], attempt: Callable[[], object], troubles: tuple[type[Exception], ...]
) -> Iterator[int]:
    """A server process by its id, from when `attempt` raises none of `troubles` to the end of the block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_up(attempt, troubles)
            yield process.pid
        finally:
            process.kill()


def until_up(attempt: Callable[[], object], troubles: tuple[type[Exception], ...]) -> None:
    """Try again and again until it raises none of `troubles`, for `PATIENCE_S` at most."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            attempt()
        except troubles:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def free_port() -> int:
    """One that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port
