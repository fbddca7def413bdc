"""A PostgreSQL at a Unix socket, reachable by TCP for JDBC; what a client says can be held up on its way."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

if TYPE_CHECKING:
    from types import TracebackType

TIMEOUT_S = 120


class HeldServer:
    """Forwards connections; the first message with `hold` in it waits until `go_on` is set."""

    def __init__(self, url: str, hold: bytes | None = None) -> None:
        at = sa.make_url(url)
        self._socket = next(Path(str(at.query["host"])).glob(".s.PGSQL.*[0-9]"))
        self.user, self.password, self.database = at.username or "", at.password or "", at.database
        self._hold = hold
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def jdbc(self) -> str:
        """The URL for JDBC."""
        return (
            f"jdbc:postgresql://127.0.0.1:{self._listener.getsockname()[1]}/{self.database}?sslmode=disable"
        )

    def catalog(self, name: str, warehouse: object) -> dict[str, str]:
        """Spark's settings of a catalog there."""
        base = f"spark.sql.catalog.{name}"
        return {
            base: "org.apache.iceberg.spark.SparkCatalog",
            f"{base}.type": "jdbc",
            f"{base}.uri": self.jdbc,
            f"{base}.jdbc.user": self.user,
            f"{base}.jdbc.password": self.password,
            f"{base}.warehouse": str(warehouse),
        }

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
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._socket))
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
