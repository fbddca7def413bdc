"""A real REST catalog of Iceberg's, from the jars of `make jars`, and a line to it that can be held."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.held_line import HeldLine
from tests.java_sources import SPARK_JARS, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

_JARS: Final = Path(__file__).parents[2] / "jars"
_SOURCE: Final = Path(__file__).with_name("RestCatalog.java")
_MAIN: Final = "sparkherd.tests.RestCatalog"
COMMIT: Final = b'"add-snapshot"'
"""What a request has in it that brings a snapshot."""
_MADE: Final = b"HTTP/1.1 200"


class RestLine(HeldLine):
    """A client's connections to the catalog; with `loses` the answer to the next commit never arrives."""

    def __init__(self, port: int) -> None:
        super().__init__(lambda: socket.create_connection(("127.0.0.1", port)))
        self.loses = False
        self._asking: socket.socket | None = None

    def catalog(self, name: str) -> dict[str, str]:
        """Spark's settings of a catalog there."""
        base = f"spark.sql.catalog.{name}"
        settings = {"type": "rest", "uri": f"http://127.0.0.1:{self.port}"}
        return {base: "org.apache.iceberg.spark.SparkCatalog"} | {
            f"{base}.{key}": value for key, value in settings.items()
        }

    def passes(self, said: bytes, client: socket.socket) -> bool:
        """As any line; who has asked for the commit whose answer is to be lost is noted."""
        if self.loses and COMMIT in said:
            self._asking = client
        return super().passes(said, client)

    def answers(self, said: bytes, client: socket.socket) -> bool:
        """The server has done it, and the connection breaks."""
        if client is not self._asking:
            return True
        assert said.startswith(_MADE), said
        self.loses, self._asking = False, None
        return False


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """The port of a catalog whose tables are in `folder`."""
    ours = [
        *sorted((_JARS / "iceberg-rest").glob("*.jar")),
        *sorted((_JARS / "spark" / "jdbc").glob("*.jar")),
    ]
    classes = compiled(_SOURCE, ours, folder / "classes")
    hadoop = sorted(SPARK_JARS.glob("hadoop-client-*.jar"))
    command = ["java", "-cp", ":".join(map(str, [classes, *ours, *hadoop])), _MAIN]
    command += [f"jdbc:sqlite:{folder}/tables.db", str(folder / "tables")]
    said = folder / "stderr"
    with (
        said.open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as server,
    ):
        assert server.stdout is not None
        port = server.stdout.readline()
        assert port, said.read_text()
        try:
            yield int(port)
        finally:
            server.kill()
