"""The JVM as a process: its start, its log, its death.

PySpark starts it and hands the process over at the gateway (`gateway.proc`, meant for this), but neither
reads what it writes nor notices when it is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from telemetry.scope import in_scope
from worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark import SparkConf

log = structlog.get_logger(__name__)

_EXIT_TIMEOUT_S = 10
_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark|%p|%c{1}|%replace{%m %throwable{1}}{[\\r\\n]+}{ }%n
"""
_QUIET = {
    # why a query failed is told once, as its cause; these tell it again, each with a trace of its own
    "org.apache.spark.sql.execution": "off",
    "org.apache.spark.executor.Executor": "off",
    "org.apache.spark.broadcast": "off",
    "org.apache.spark.util.Utils": "off",
    "org.apache.spark.scheduler.TaskSetManager": "error",
    # an asked-for stop cancels jobs that may have ended just now
    "org.apache.spark.scheduler.DAGScheduler": "error",
    # a pool a task needs no configuration
    "org.apache.spark.scheduler.FairSchedulableBuilder": "error",
    "org.apache.hadoop.util": "error",
}
_LINE = re.compile(r"spark\|(?P<level>\w+)\|(?P<logger>[^|]*)\|(?P<message>.*)")
_REMEMBERED_LINES = 20


class Jvm:
    """One JVM of Spark's, from its start to its death."""

    def __init__(self, gateway: Any, last_lines: Iterable[str]) -> None:
        self.gateway = gateway
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._last_lines = last_lines
        self._closing = False

    @classmethod
    def launch(cls, conf: SparkConf) -> Jvm:
        """Start a JVM for `conf`.

        Raises:
            StartError: it ended before it was ready; with what it said last.
        """
        reader, writer = os.pipe()
        lines, _ = _pump(reader)
        try:
            gateway = launch_gateway(conf, {"stderr": writer})  # type: ignore[no-untyped-call]  # theirs
            return cls(gateway, lines)
        except PySparkRuntimeError:
            raise StartError("the JVM ended before Spark was ready\n" + "\n".join(lines)) from None
        finally:
            os.close(writer)

    def watch(self, died: Callable[[str], None]) -> None:
        """Call `died` from a thread of its own, with a line that says how, unless `close` ends the JVM."""

        def wait() -> None:
            code = self._process.wait()
            if not self._closing:
                died(how_it_ended(code))

        threading.Thread(target=wait, name="jvm-watch", daemon=True).start()

    def close(self) -> None:
        """End the JVM and let PySpark forget it, so that another one can be started."""
        self._closing = True
        with contextlib.suppress(Exception):  # whatever is left of it, the process is ended below
            self.gateway.shutdown()
        _forget()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def log_configuration() -> Path:
    """A new file that tells Spark's log4j to write a line an event; only the start needs it."""
    silenced = [
        f"logger.quiet{index}.name = {name}\nlogger.quiet{index}.level = {level}\n"
        for index, (name, level) in enumerate(_QUIET.items())
    ]
    descriptor, path = tempfile.mkstemp(prefix="sparkherd-log4j2-", suffix=".properties")
    with os.fdopen(descriptor, "w") as file:
        file.write(_LOG4J + "".join(silenced))
    return Path(path)


def how_it_ended(code: int) -> str:
    """A process's exit code in words."""
    return f"the JVM was killed by signal {-code}" if code < 0 else f"the JVM ended with exit code {code}"


def _forget() -> None:
    SparkContext._gateway = None  # noqa: SLF001 - PySpark has no other way to start a second JVM
    SparkContext._jvm = None  # noqa: SLF001 - likewise


def _pump(reader: int) -> tuple[deque[str], threading.Thread]:
    """Move what the JVM says into the worker's log; returns its last lines, and the thread that does it."""
    last: deque[str] = deque(maxlen=_REMEMBERED_LINES)

    def run() -> None:
        with os.fdopen(reader, errors="replace") as lines:
            for line in lines:
                last.append(line.rstrip())
                _tell(line.rstrip())

    thread = threading.Thread(target=in_scope(run), name="jvm-log", daemon=True)
    thread.start()
    return last, thread


def _tell(line: str) -> None:
    if match := _LINE.fullmatch(line):
        say = log.error if match["level"] in {"ERROR", "FATAL"} else log.warning
        say(match["message"].strip(), logger=match["logger"])
    elif line:
        log.debug(line)
