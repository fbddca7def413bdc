"""A PostgreSQL at a Unix socket, reachable by TCP for JDBC; what a client says can be held up on its way."""

from __future__ import annotations

import socket
from pathlib import Path

import sqlalchemy as sa

from tests.held_line import HeldLine


class HeldServer(HeldLine):
    """Forwards connections; the first message with `hold` in it waits until `go_on` is set."""

    def __init__(self, url: str, hold: bytes | None = None) -> None:
        super().__init__(self._server, hold)
        at = sa.make_url(url)
        self._socket = next(Path(str(at.query["host"])).glob(".s.PGSQL.*[0-9]"))
        self.user, self.password, self.database = at.username or "", at.password or "", at.database

    @property
    def jdbc(self) -> str:
        """The URL for JDBC."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}?sslmode=disable"

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

    def _server(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._socket))
        return server
