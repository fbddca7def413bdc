"""The JVM as a process: its start, its log, its death.

PySpark starts it and hands the process over at the gateway (`gateway.proc`, meant for this), but neither
reads what it writes nor notices when it is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from protocol.messages.membership import EngineEnd
from telemetry.scope import in_scope
from worker.query_engine import EngineDeath, QueryError
from worker.spark.classic.java_names import RememberedNames
from worker.spark.classic.jvm_heartbeat import HEARTBEAT_S, JvmHeartbeat
from worker.spark.classic.submission import environment
from worker.spark.packages import unresolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

log = structlog.get_logger(__name__)

_EXIT_TIMEOUT_S = 10
_OUT_OF_MEMORY = 3
"""The exit code of a JVM that has run out of memory with -XX:+ExitOnOutOfMemoryError; of others, too."""
_CRASHES = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV})
"""Signals that a JVM dies of by its own fault, as by native code in it."""
_ASKED_TO_END = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals that a JVM ends in order at, with 128 and their number as its exit code."""
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
_REMEMBERED_LINES = 400
"""What Ivy says of packages that it cannot find is long."""
_SHOWN_LINES = 20
_LONGEST_LINE = 1 << 16
"""In characters; of a longer one each part is a line: code of a task may print what it likes, for ever."""


class Jvm:
    """One JVM of Spark's, from its start to its death."""

    def __init__(self, gateway: Any, last_lines: Iterable[str]) -> None:
        self.gateway = gateway
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._last_lines = last_lines
        self._closing = False

    @classmethod
    def launch(cls, environ: Mapping[str, str], inherited: Iterable[int] = ()) -> Jvm:
        """Start a JVM in the environment `environ`, which says what else it is started with.

        It keeps the file descriptors `inherited` open as long as it lives; what it starts does not get them.

        Raises:
            QueryError: it ended before it was ready; with what it said last.
        """
        reader, writer = os.pipe()
        lines, _ = _pump(reader)
        try:
            with environment(environ):
                given = {"stderr": writer, "pass_fds": tuple(inherited)}
                gateway = launch_gateway(None, given)  # type: ignore[no-untyped-call]  # theirs
            gateway.jvm = RememberedNames(gateway.jvm)
            return cls(gateway, lines)
        except PySparkRuntimeError:
            raise QueryError(why_not_ready(list(lines))) from None
        finally:
            os.close(writer)

    def watch(self, died: Callable[[EngineDeath], None], limit_s: float) -> None:
        """Call `died` from a thread of its own, unless `close` ends the JVM.

        One that does not answer for `limit_s` seconds is killed, and so is as dead as any other: nobody who
        waits for an answer of it waits for ever.
        """
        heartbeat = JvmHeartbeat(self._ask, limit_s)

        def wait() -> None:
            code = self._exit_code(HEARTBEAT_S)
            while code is None and heartbeat.is_alive():
                code = self._exit_code(HEARTBEAT_S)
            if code is None:
                self._kill()
            heartbeat.stop()
            if not self._closing:
                died(hung(limit_s) if code is None else how_it_ended(code))

        heartbeat.start()
        threading.Thread(target=wait, name="jvm-watch", daemon=True).start()

    def close(self, stop: Callable[[], object] = lambda: None) -> None:
        """End the JVM, after `stop` if that does not take too long, and let PySpark forget it.

        Another one can be started then.
        """
        self._closing = True
        _within(_EXIT_TIMEOUT_S, self._shut_down, stop)
        if self._exit_code(0 if self._process.stdin is None else _EXIT_TIMEOUT_S) is None:
            self._kill()
        _forget()

    @property
    def pid(self) -> int:
        """Its number as a process."""
        return self._process.pid

    def kill(self) -> None:
        """End it, whatever it is doing. Never blocks, and may be called from any thread."""
        self._process.kill()

    def _shut_down(self, stop: Callable[[], object]) -> None:
        """In order, as far as it can still be asked to."""
        for ask in (stop, self.gateway.shutdown):
            with contextlib.suppress(Exception):  # whatever is left of it, the process is ended
                ask()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _ask(self) -> object:
        """Any question will do."""
        return self.gateway.jvm.java.lang.System.nanoTime()

    def _kill(self) -> None:
        self.kill()
        self._process.wait()

    def _exit_code(self, within_s: float) -> int | None:
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None


def log_configuration() -> str:
    """What tells Spark's log4j to write a line an event."""
    silenced = [
        f"logger.quiet{index}.name = {name}\nlogger.quiet{index}.level = {level}\n"
        for index, (name, level) in enumerate(_QUIET.items())
    ]
    return _LOG4J + "".join(silenced)


def how_it_ended(code: int) -> EngineDeath:
    """A process's exit code in words; a crash is a signal, too, and a signal may be an exit code."""
    by_itself = -code in _CRASHES if code < 0 else code - 128 not in _ASKED_TO_END
    said = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if code == _OUT_OF_MEMORY:
        said += ": perhaps it was out of memory, see --spark-conf spark.driver.memory"
    end = EngineEnd.EXITED if by_itself else EngineEnd.KILLED
    return EngineDeath(f"the JVM {said}", end, code == _OUT_OF_MEMORY)


def why_not_ready(lines: Sequence[str]) -> str:
    """Why a JVM ended before Spark was ready, from what it said."""
    if missing := unresolved(lines):
        return missing
    return "\n".join(["the JVM ended before Spark was ready", *lines[-_SHOWN_LINES:]])


def hung(limit_s: float) -> EngineDeath:
    """The death of a JVM that was killed because it gave no answer, whoever is to blame for that."""
    how = f"the JVM has not answered for {limit_s:g} s and was killed; see --jvm-timeout-ms"
    return EngineDeath(how, EngineEnd.LOST)


def _within(seconds: float, function: Callable[..., object], *args: object) -> None:
    """Call `function`, but wait only so long for it to return."""
    calling = threading.Thread(target=function, args=args, daemon=True)
    calling.start()
    calling.join(seconds)


def _forget() -> None:
    """PySpark has no other way to start a second JVM; a context whose JVM has died stays its active one."""
    SparkContext._gateway = None  # noqa: SLF001 - see above
    SparkContext._jvm = None  # noqa: SLF001 - likewise
    SparkContext._active_spark_context = None  # noqa: SLF001 - likewise


def _pump(reader: int) -> tuple[deque[str], threading.Thread]:
    """Move what the JVM says into the worker's log; returns its last lines, and the thread that does it."""
    last: deque[str] = deque(maxlen=_REMEMBERED_LINES)

    def run() -> None:
        with os.fdopen(reader, errors="replace") as lines:
            is_rest = False
            for line in iter(partial(lines.readline, _LONGEST_LINE), ""):
                if not is_rest:  # what follows may begin anywhere, in the middle of a secret, too
                    last.append(line.rstrip())
                    _tell(line.rstrip())
                is_rest = not line.endswith("\n")

    thread = threading.Thread(target=in_scope(run), name="jvm-log", daemon=True)
    thread.start()
    return last, thread


def _tell(line: str) -> None:
    if match := _LINE.fullmatch(line):
        say = log.error if match["level"] in {"ERROR", "FATAL"} else log.warning
        say(match["message"].strip(), logger=match["logger"])
    elif line:
        log.debug(line)
