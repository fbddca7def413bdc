"""The worker's one warm Spark session in a JVM of its own."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING

from py4j.protocol import Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from protocol.definition import SUBSTITUTE
from worker.executor import StartError
from worker.spark.causes import describe
from worker.spark.classic.java import require_java
from worker.spark.classic.jvm import Jvm, log_configuration
from worker.spark.classic.site import ClassicSite
from worker.spark.engine import Engine
from worker.spark.logs import quieten_pyspark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker.sinks.marks import Owner
    from worker.spark.settings import SparkSettings

PYTHON = "spark.pyspark.python"
DEFAULTS = {
    "spark.ui.enabled": "false",  # memory and a port; `--spark-conf spark.ui.enabled=true` brings it back
    "spark.ui.showConsoleProgress": "false",  # the worker's log is no terminal
    "spark.scheduler.mode": "FAIR",  # one pool a task: a long batch does not starve the others
    "spark.sql.session.timeZone": "UTC",  # a task means the same on every worker
    "spark.sql.streaming.stopTimeout": "500ms",  # a stop that hangs gives its thread back
    SUBSTITUTE: "false",  # `${env:NAME}` in a task's SQL would read any variable of the worker
}
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",  # 200 state stores a query make sense on a cluster only
    PYTHON: sys.executable,  # what runs beside executors needs what the worker has
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class ClassicEngine(Engine):
    """A Spark session together with the JVM that runs it."""

    losses = (Py4JNetworkError, OSError)

    def __init__(self, spark: SparkSession, jvm: Jvm) -> None:
        self.spark = spark
        self.jvm = jvm

    @classmethod
    def open(cls, settings: SparkSettings) -> ClassicEngine:
        """Start Spark; takes seconds.

        Raises:
            StartError: no Java, or Spark refused its settings.
        """
        require_java()
        _quieten()
        log_file = log_configuration()
        try:
            conf = _spark_conf(settings, log_file.as_uri())
            jvm = Jvm.launch(conf)
            try:
                return cls(SparkSession(_context(conf, jvm)), jvm)
            except Exception as error:  # noqa: BLE001 - Spark raises what it likes
                cause = describe(error)
                jvm.close()
                raise StartError(f"Spark did not start: {cause}") from None
        finally:
            log_file.unlink()

    @property
    def url(self) -> str | None:
        """By the session's context."""
        url = self.spark.sparkContext.uiWebUrl
        return None if url is None else str(url)

    def watch(self, died: Callable[[str], None]) -> None:
        """By the process's exit code."""
        self.jvm.watch(died)

    def site(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> ClassicSite:
        """In the same JVM."""
        return ClassicSite(self.spark, owner, conf, checkpoint, may_write)

    def close(self) -> None:
        """Stop Spark and end its JVM, whatever state it is in."""
        with contextlib.suppress(Exception):  # a JVM that is gone cannot be asked to stop
            self.spark.stop()
        self.jvm.close()


def _context(conf: SparkConf, jvm: Jvm) -> SparkContext:
    """The context; PySpark itself heeds `spark.pyspark.python` in jobs that `spark-submit` starts only."""
    context = SparkContext(conf=conf, gateway=jvm.gateway)
    context.pythonExec = conf.get(PYTHON, context.pythonExec) or context.pythonExec
    return context


def _spark_conf(settings: SparkSettings, log_file: str) -> SparkConf:
    local = LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    chosen = {**DEFAULTS, **local, **settings.conf}
    chosen["spark.app.name"] = settings.app_name
    chosen["spark.master"] = settings.master
    chosen[JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={log_file} {chosen.get(JAVA_OPTIONS, '')}".strip()
    conf = SparkConf(loadDefaults=False)
    for key, value in chosen.items():
        conf.set(key, value)
    return conf


def _quieten() -> None:
    quieten_pyspark()
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J tells the root logger of every broken connection, with a trace; the JVM's death is told once."""
    return record.module != "java_gateway"
