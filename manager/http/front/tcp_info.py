"""How much of what was sent the other end has acknowledged, as the system knows it (Linux: tcp(7), TCP_INFO).

For TLS, which hands on what it is given in one piece and forgets it: neither `get_write_buffer_size` nor
`pause_writing` says that an answer waits.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_INFO: Final = struct.Struct("=24xI92xQ16xI")
"""Of `struct tcp_info`: `tcpi_unacked`, `tcpi_bytes_acked` and `tcpi_notsent_bytes` (Linux 4.6)."""


class Acknowledged(NamedTuple):
    """Bytes that the other end has `acked` since it connected, and whether more `waits` for it."""

    acked: int
    waits: bool


def acknowledged(sock: Any) -> Acknowledged | None:
    """What `sock` knows of it; None if it is closed, or the system does not tell."""
    option = getattr(socket, "TCP_INFO", None)
    try:
        info = b"" if option is None else sock.getsockopt(socket.IPPROTO_TCP, option, _INFO.size)
    except OSError:
        return None
    if len(info) < _INFO.size:
        return None
    unacked, acked, unsent = _INFO.unpack(info)
    return Acknowledged(acked, waits=unacked > 0 or unsent > 0)


class Watch:
    """Looks at a connection every `seconds`, and calls `cut` if what waits did not move in between."""

    def __init__(self, sock: Any, seconds: float, cut: Callable[[], None]) -> None:
        self._sock = sock
        self._seconds = seconds
        self._cut = cut
        self._before: Acknowledged | None = None
        self._next: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the system tells what it takes."""
        self._before = acknowledged(self._sock)
        if self._before is not None:
            self._next = loop.call_later(self._seconds, self._look, loop)
        return self._before is not None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        before = self._before
        if before is not None and before.waits and before == acknowledged(self._sock):
            self._cut()
        else:
            self.begin(loop)

    def end(self) -> None:
        """The connection is closed."""
        if self._next is not None:
            self._next.cancel()
