"""Ports for servers that are started later, and again after their death on the same one."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress
from typing import Final

PORTS: Final = range(20_000, 32_768)
"""Below those that Linux and macOS give to connections: one of these may be taken by anybody at any time."""


def free_ports(host: str, count: int) -> list[int]:
    """So many that nobody listens on now, in no order.

    Raises:
        OSError: there are not so many.
    """
    found: list[int] = []
    with ExitStack() as stack:
        for port in random.sample(PORTS, len(PORTS)):
            if len(found) == count:
                break
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind((host, port))
                found.append(port)
    if len(found) < count:
        raise OSError(f"of the ports {PORTS[0]} to {PORTS[-1]} of {host} only {len(found)} are free")
    return found
