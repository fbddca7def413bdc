"""A check's session at a Spark Connect server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from worker.spark.checks.check_session import CheckSession
from worker.spark.connect.query_session import open_configured, require_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from worker.spark.connect.query_session import Server


class ConnectCheckSession(CheckSession):
    """A session that only this check has; it ends with it."""

    def __init__(self, server: Server, conf: Mapping[str, str]) -> None:
        self._server = server
        self.spark = open_configured(server, str(uuid4()), conf)

    def require_query(self, text: str) -> None:
        """By the server's parser."""
        require_query(self.spark, text)

    def refuse_unsupported(self, frame: DataFrame, output_mode: str) -> bool:
        """The server says it only when it is to start a query."""
        del frame, output_mode
        return False

    def require_format(self, name: str) -> None:
        """Likewise."""
        del name

    def close(self) -> None:
        """In the background."""
        session: Any = self.spark
        self._server.let_go(session)
