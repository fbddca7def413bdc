"""A real Spark Connect server, from the scripts that are in the package, as a process on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[1]
PACKAGE = Path(pyspark.__file__).parent
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
_STARTED = re.compile(r"Spark Connect server started at: 127\.0\.0\.1:(\d+)")


class ConnectServer:
    """One server; everything it says is in the file `log`."""

    def __init__(self, folder: Path, modules: Path, conf: Mapping[str, str]) -> None:
        """Its Python finds this checkout, and the modules in the folder `modules`; `conf` is over `CONF`."""
        self.log = folder / "server.log"
        self._started = threading.Event()
        self._port = ""
        environment = {
            **os.environ,
            "SPARK_HOME": str(_home(folder)),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(modules)]),
        }
        self.process = subprocess.Popen(
            [str(folder / "spark" / "bin" / "spark-submit"), *_arguments({**CONF, **conf})],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self.process.stdout is not None
        self._reading = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reading.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        assert self._started.wait(START_TIMEOUT_S), self.log.read_text()
        assert self._port, self.log.read_text()
        return f"sc://127.0.0.1:{self._port}"

    def stop(self) -> None:
        """SIGTERM, and if it does not mind that, SIGKILL."""
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reading.join(STOP_TIMEOUT_S)

    def _read(self, said: IO[str]) -> None:
        with said, self.log.open("a") as log:
            for line in said:
                log.write(line)
                log.flush()
                if match := _STARTED.search(line):
                    self._port = match[1]
                    self._started.set()
        self._started.set()


def _home(folder: Path) -> Path:
    """Spark's own folder without its zipped Python, which every process would compile anew."""
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(PACKAGE / name)
    return home


def _arguments(settings: Mapping[str, str]) -> list[str]:
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    return ["--master", "local[2]", "--driver-memory", "1g", *conf, *server]


@contextmanager
def running(
    folder: Path, modules: Path, conf: Mapping[str, str] = MappingProxyType({})
) -> Iterator[ConnectServer]:
    """A server until the end of the block."""
    server = ConnectServer(folder, modules, conf)
    try:
        yield server
    finally:
        server.stop()
