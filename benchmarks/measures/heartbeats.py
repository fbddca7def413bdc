"""Heartbeats a second of one manager process against a bare server that parses and answers the same bodies.

Plain ones are answered at once. A held one (`wait_ms`) is held for a millisecond here, by the bare server
with a sleep: over 50 connections it is the work of holding and letting go that takes the time. The bare
server speaks TLS where the manager does, and asks for no token.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from benchmarks.tools.figures import Line, summary
from benchmarks.tools.load import answers_a_second, request
from benchmarks.tools.servers import bare, certificate, manager
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
    from collections.abc import Iterator, Sequence

    from benchmarks.tools.servers import Server

CONNECTIONS = 50
CASES = {
    "50 connections": (CONNECTIONS, 0),
    "1 connection": (1, 0),
    "50 connections, held": (CONNECTIONS, 1),
}
"""Connections, and the milliseconds that each heartbeat is held."""
PATIENT = "--disconnect-grace-ms", "60000"
"""At the end of a round, connections are closed with heartbeats held on them."""
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


def measure() -> Iterator[Line]:
    """How many times the bare server's time each takes; at most 1 / 0.7 is the goal."""
    with bare() as other, manager(*PATIENT) as ours:
        members = settled(ours, CONNECTIONS)
        for name, (connections, wait_ms) in CASES.items():
            yield _compare(name, other, ours, beats(members[:connections], wait_ms))
    with bare() as other, manager(token=True) as ours:
        members = settled(ours, CONNECTIONS)
        yield _compare("50 connections, with tokens", other, ours, beats(members))
    with certificate() as secured, bare(secured) as other, manager(secured=secured, token=True) as ours:
        members = settled(ours, CONNECTIONS)
        yield _compare("50 connections, with tokens over TLS", other, ours, beats(members))


def _compare(name: str, other: Server, ours: Server, bodies: list[bytes]) -> Line:
    rates = [(rate(other, bodies), rate(ours, bodies)) for _ in range(ROUNDS)]
    ratios = [theirs / mine for theirs, mine in rates]
    note = f"{max(mine for _, mine in rates):,.0f} a second"
    return Line(f"time of a heartbeat, {name}", GOAL, *summary(ratios), "times", note)


def rate(server: Server, bodies: list[bytes]) -> float:
    """Answers a second with a connection for each of `bodies`."""
    host, _ = server.address
    path = path_of("groups", GROUP, "heartbeat")
    requests = [request(host, path, body, server.token) for body in bodies]
    return answers_a_second(server.address, requests, SECONDS, server.tls)


def settled(server: Server, count: int) -> list[JoinResponse]:
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
