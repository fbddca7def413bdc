"""Heartbeats a second of one manager process against a bare server that parses the same body."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from load import answers_a_second, request
from measuring import Line, summary

from cli.client import Client, path_of
from protocol.messages.base import NULL, Request, Response
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    Protocol,
    SyncRequest,
    SyncResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 50
ROUNDS = 5
SECONDS = 1.0
GOAL = 1 / 0.7
GROUP = "bench"
JOIN = JoinRequest(
    member_id="",
    session_timeout_ms=60_000,
    rebalance_timeout_ms=60_000,
    protocol_type="bench",
    protocols=(Protocol("range", NULL),),
    require_member_id=False,
)
R = TypeVar("R", bound=Response)


def measure() -> list[Line]:
    """How many times slower than the bare server, over 50 connections; at most 1 / 0.7 is the goal."""
    here = str(Path(__file__).parent / "bare_server.py")
    with (
        tempfile.TemporaryDirectory() as folder,
        _serving(here) as bare,
        _serving(*_manager(folder)) as manager,
    ):
        bodies = _bodies(manager)
        ratios = [_rate(bare, bodies) / _rate(manager, bodies) for _ in range(ROUNDS)]
    return [Line("time of a heartbeat against a bare server", round(GOAL, 2), *summary(ratios), "times")]


def _manager(folder: str) -> list[str]:
    database = f"sqlite+aiosqlite:///{folder}/manager.db"
    flags = ["--listen", "127.0.0.1:0", "--database", database, "--initial-rebalance-delay-ms", "2000"]
    flags += ["--log-level", "warning"]
    return ["-m", "cli", "manager", *flags]


@contextmanager
def _serving(*command: str) -> Iterator[str]:
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        try:
            yield line.removeprefix("listening on ").strip()
        finally:
            process.terminate()


def _rate(url: str, bodies: list[bytes]) -> float:
    host, port = url.removeprefix("http://").split(":")
    requests = [request(host, path_of("groups", GROUP, "heartbeat"), body) for body in bodies]
    return answers_a_second((host, int(port)), requests, SECONDS)


def _bodies(url: str) -> list[bytes]:
    """A heartbeat of each of 50 members in a Stable group."""
    client = Client([url])
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        joined = list(pool.map(lambda _: _call(client, "join", JOIN, JoinResponse), range(CONNECTIONS)))
    for member in sorted(joined, key=lambda j: j.member_id != j.leader_id):
        body = SyncRequest(member_id=member.member_id, generation_id=member.generation_id)
        _call(client, "sync", body, SyncResponse)
    return [_heartbeat(member) for member in joined]


def _call(client: Client, verb: str, body: Request, into: type[R]) -> R:
    return client.call("POST", path_of("groups", GROUP, verb), body, into=into)


def _heartbeat(member: JoinResponse) -> bytes:
    return msgspec.json.encode(
        HeartbeatRequest(member_id=member.member_id, generation_id=member.generation_id)
    )
