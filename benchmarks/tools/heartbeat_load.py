"""Members of one group whose heartbeats a server answers as fast as it can, and what that costs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec
import psutil

from benchmarks.tools.load import answers_a_second, request
from cli.client.admin_client import AdminClient, path_of
from protocol.messages.base import NULL, Request, Response
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from worker.client.bearer import Bearer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.tools.servers import ServerProcess

CONNECTIONS = 50
SECONDS = 1.0
PATIENT = "--disconnect-grace-ms", "60000"
"""Between two rounds, connections are closed, and the bare server has its turn: on a busy machine for longer
than the second that a member without a connection has."""
GROUP = "bench"
REASON = (
    "twelve measurements over 50 connections lie between 1.12 and 1.48, eleven of them beside other work; on"
    " a quiet machine it was 1.46; what is ours of it is the group's rules, who may ask, and deadlines"
)
"""Why a heartbeat may take longer than its goal."""
JOIN = JoinRequest(
    member_id="",
    session_timeout_ms=60_000,
    rebalance_timeout_ms=60_000,
    protocol_type="bench",
    protocols=(Protocol("range", NULL),),
    require_member_id=False,
)
R = TypeVar("R", bound=Response)


def rate(server: ServerProcess, bodies: list[bytes]) -> float:
    """Answers a second with a connection for each of `bodies`."""
    host, _ = server.address
    path = path_of("groups", GROUP, "heartbeat")
    requests = [request(host, path, body, server.token) for body in bodies]
    return answers_a_second(server.address, requests, SECONDS, server.tls)


def settled(server: ServerProcess, count: int) -> list[JoinResponse]:
    """The members of a Stable group."""
    client = AdminClient([server.url], bearer=Bearer(server.token or None), tls=server.tls)
    with ThreadPoolExecutor(count) as pool:
        joined = list(pool.map(lambda _: _call(client, "join", JOIN, JoinResponse), range(count)))
    for member in sorted(joined, key=lambda j: j.member_id != j.leader_id):
        body = SyncRequest(member_id=member.member_id, generation_id=member.generation_id)
        _call(client, "sync", body, SyncResponse)
    return joined


def _call(client: AdminClient, verb: str, body: Request, into: type[R]) -> R:
    return client.call("POST", path_of("groups", GROUP, verb), body, into=into)


def beats(members: Sequence[JoinResponse], wait_ms: int = 0) -> list[bytes]:
    """The body of a heartbeat of each."""
    return [
        msgspec.json.encode(
            HeartbeatRequest(member_id=member.member_id, generation_id=member.generation_id, wait_ms=wait_ms)
        )
        for member in members
    ]


def processor_time(server: ServerProcess, bodies: list[bytes]) -> tuple[float, float]:
    """User's and system's microseconds of the server for each of many heartbeats."""
    process = psutil.Process(server.process.pid)
    before = process.cpu_times()
    answered = rate(server, bodies) * SECONDS
    after = process.cpu_times()
    return (after.user - before.user) / answered * 1e6, (after.system - before.system) / answered * 1e6
