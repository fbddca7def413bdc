"""What one connection, and one address, may keep of a manager. Rules without I/O."""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of connections.

    Attributes:
        request_s: seconds in which a request has to come in whole, its body included.
        answer_s: seconds in which something of an answer that waits for its reader has to be taken.
        idle_s: seconds that a connection may be open without a request.
        connections: how many one address may have; this machine's own have no limit.
    """

    request_s: float = 30.0
    answer_s: float = 60.0
    idle_s: float = 75.0
    connections: int = 1000


class Peers:
    """Counts the connections of each address."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """One more; False if that is one too many, and it is counted until it leaves all the same."""
        self._open[address] += 1
        return self._open[address] <= self._most or _is_local(address)

    def leave(self, address: str) -> None:
        """One less."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


def _is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return True  # a Unix socket has no address
