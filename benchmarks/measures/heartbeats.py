"""Heartbeats a second of one manager process against a bare server that parses and answers the same bodies.

Plain ones are answered at once. A held one (`wait_ms`) is held for a millisecond here, by the bare server
with a sleep: over 50 connections it is the work of holding and letting go that takes the time. The bare
server speaks TLS where the manager does, and asks for no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.heartbeat_load import CONNECTIONS, PATIENT, REASON, beats, rate, settled
from benchmarks.tools.servers import bare, certificate, manager

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.tools.servers import ServerProcess

CASES = {
    "50 connections": (CONNECTIONS, 0),
    "1 connection": (1, 0),
    "50 connections, held": (CONNECTIONS, 1),
}
"""Connections, and the milliseconds that each heartbeat is held."""
ROUNDS = 5
GOAL = 1 / 0.7


def measure() -> Iterator[ResultLine]:
    """How many times the bare server's time each takes; at most 1 / 0.7 is the goal."""
    with bare() as other, manager(*PATIENT) as ours:
        members = settled(ours, CONNECTIONS)
        for name, (connections, wait_ms) in CASES.items():
            yield _compare(name, other, ours, beats(members[:connections], wait_ms))
    with bare() as other, manager(*PATIENT, token=True) as ours:
        members = settled(ours, CONNECTIONS)
        yield _compare("50 connections, with tokens", other, ours, beats(members))
    with (
        certificate() as secured,
        bare(secured) as other,
        manager(*PATIENT, secured=secured, token=True) as ours,
    ):
        members = settled(ours, CONNECTIONS)
        yield _compare("50 connections, with tokens over TLS", other, ours, beats(members))


def _compare(name: str, other: ServerProcess, ours: ServerProcess, bodies: list[bytes]) -> ResultLine:
    rates = [(rate(other, bodies), rate(ours, bodies)) for _ in range(ROUNDS)]
    ratios = [theirs / mine for theirs, mine in rates]
    note = f"{max(mine for _, mine in rates):,.0f} a second"
    return ResultLine(f"time of a heartbeat, {name}", GOAL, *summary(ratios), "times", note, REASON)
