"""A line of TCP to a server, on which what a client says, or is answered, can be held up or lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

TIMEOUT_S: Final = 120


class HeldLine:
    """Forwards connections; the first message with `hold` in it waits until `go_on` is set."""

    def __init__(self, connect: Callable[[], socket.socket], hold: bytes | None = None) -> None:
        """`connect` makes a connection to the server."""
        self._connect = connect
        self._hold = hold
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def port(self) -> int:
        """Where clients find it, on 127.0.0.1."""
        port: int = self._listener.getsockname()[1]
        return port

    def hold(self, message: bytes) -> None:
        """Have the next one with `message` in it wait."""
        self._hold = message

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.go_on.set()
        self._listener.close()

    def answers(self, said: bytes, client: socket.socket) -> bool:
        """Whether what the server says may go on to the client; returns when it may."""
        del said, client
        return True

    def passes(self, said: bytes, client: socket.socket) -> bool:
        """Whether what a client says may go on to the server; returns when it may."""
        del client
        if self._hold is not None and self._hold in said:
            self._hold = None
            self.reached.set()
            assert self.go_on.wait(TIMEOUT_S)
        return True

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                for one, other, is_said in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=(one, other, is_said), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, is_said: bool) -> None:  # noqa: FBT001 - a direction
        with suppress(OSError):
            while data := one.recv(65536):
                if not (self.passes(data, one) if is_said else self.answers(data, other)):
                    break
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)
