"""Ports for servers that are started later, and again after their death on the same one."""

from __future__ import annotations

import errno
import random
import socket
from contextlib import ExitStack, closing
from itertools import islice
from typing import Final

PORTS: Final = range(20_000, 32_768)
"""Below those that Linux and macOS give to connections, if nobody has set another range: one of these may be
taken by anybody at any time."""
_NOT_FREE: Final = {errno.EADDRINUSE, errno.EACCES}


def free_ports(host: str, count: int) -> list[int]:
    """So many that nobody listens on now, in no order.

    Raises:
        OSError: there are not so many, or none can be looked for.
    """
    with ExitStack() as taken:
        ports = random.sample(PORTS, len(PORTS))
        found = list(islice((port for port in ports if _could_be_taken(host, port, taken)), count))
    if len(found) < count:
        raise OSError(f"of the ports {PORTS[0]} to {PORTS[-1]} of {host} only {len(found)} are free")
    return found


def _could_be_taken(host: str, port: int, taken: ExitStack) -> bool:
    """Whether it could be taken, until the end of the stack."""
    with ExitStack() as this:
        probe = this.enter_context(closing(socket.socket()))
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in _NOT_FREE:
                return False
            raise
        taken.push(this.pop_all())
    return True
