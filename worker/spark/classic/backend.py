"""The worker's one warm Spark session in a JVM of its own."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from definition.spark_conf import SQL_ON_FILES, SUBSTITUTE
from protocol.connectors import KAFKA
from worker.query_engine import QueryError, SparkKind
from worker.sinks.lake_jars import with_lakes
from worker.spark.backend import SparkBackend
from worker.spark.causes import describe
from worker.spark.classic.check_session import ClassicCheckSession
from worker.spark.classic.checkpoint import HadoopCheckpoint
from worker.spark.classic.formats import formats_of
from worker.spark.classic.jars import with_jars, with_readers
from worker.spark.classic.java import require_java
from worker.spark.classic.jvm import Jvm, log_configuration
from worker.spark.classic.kafka import KafkaBrokers
from worker.spark.classic.plan_session import ClassicPlanSession
from worker.spark.classic.pools import Pools
from worker.spark.classic.resources import ClassicResources
from worker.spark.classic.submission import submission
from worker.spark.kafka.group_progress import GroupProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from protocol.messages.resources import WorkerResources
    from worker.query_engine import EngineDeath, NotedQuery
    from worker.sinks.fence import Owner
    from worker.spark.classic.query_session import ClassicQuerySession
    from worker.spark.settings import SparkSettings

PYTHON = "spark.pyspark.python"
DEFAULTS = {
    "spark.ui.enabled": "false",  # memory and a port; `--spark-conf spark.ui.enabled=true` brings it back
    "spark.ui.showConsoleProgress": "false",  # the worker's log is no terminal
    "spark.scheduler.mode": "FAIR",  # one pool a task: a long batch does not starve the others
    "spark.sql.session.timeZone": "UTC",  # a task means the same on every worker
    "spark.sql.streaming.stopTimeout": "500ms",  # a stop that hangs gives its thread back
    SUBSTITUTE: "false",  # `${env:NAME}` in a task's SQL would read any variable of the worker
    SQL_ON_FILES: "false",  # a task's files are those that its source names
}
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A JVM that was frozen for two minutes would take its own executor for lost, and end itself ten later.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    "spark.sql.shuffle.partitions": "4",  # 200 state stores a query make sense on a cluster only
    PYTHON: sys.executable,  # what runs beside executors needs what the worker has
}


class ClassicBackend(SparkBackend):
    """A Spark session together with the JVM that runs it."""

    plans_ahead = True

    def __init__(self, spark: SparkSession, jvm: Jvm, timeout_s: float) -> None:
        """`timeout_s` is how long the JVM may be silent before it counts as hung."""
        self.spark = spark
        self.jvm = jvm
        self.url = spark.sparkContext.uiWebUrl
        self.kind = SparkKind(spark.version, formats_of(spark))
        if not self.kind.formats.lack(KAFKA):
            self.brokers = KafkaBrokers(spark)
            self.groups = GroupProgress(self.brokers)
        self._timeout_s = timeout_s
        self._resources: ClassicResources | None = None
        self._pools = Pools(spark)

    @classmethod
    def open(cls, settings: SparkSettings) -> ClassicBackend:
        """Start Spark; takes seconds.

        Raises:
            QueryError: no Java, or Spark refused its settings.
        """
        require_java()
        _quieten_py4j()
        loaded = with_jars(
            _chosen(settings),
            packages=settings.packages,
            jars=settings.jars,
            repositories=settings.repositories,
        )
        chosen = with_readers(with_lakes(loaded))
        with submission(chosen, log_configuration()) as environ:
            jvm = Jvm.launch(environ, settings.inherited)
            try:
                return cls(SparkSession(_context(chosen, jvm)), jvm, settings.jvm_timeout_s)
            except Exception as error:  # noqa: BLE001 - Spark raises what it likes
                cause = describe(error)
                jvm.close()
                raise QueryError(f"Spark did not start: {cause}") from None

    def is_loss(self, error: BaseException) -> bool:
        """A broken connection; one that breaks while an answer is awaited is told by no class of its own."""
        return isinstance(error, (Py4JNetworkError, OSError)) or type(error) is Py4JError

    def watch(self, died: Callable[[EngineDeath], None]) -> None:
        """By the process's exit code, and by whether it answers."""
        self.jvm.watch(died, self._timeout_s)

    def query_session(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> ClassicQuerySession:
        """In the same JVM."""
        return self.plan_session(conf, checkpoint).query_session(owner, may_write)

    def plan_session(self, conf: Mapping[str, str], checkpoint: str) -> ClassicPlanSession:
        """In the same JVM, where a plan stays good for the query."""
        return ClassicPlanSession(self.spark, conf, checkpoint, self._pools)

    def check_session(self, conf: Mapping[str, str]) -> ClassicCheckSession:
        """In the same JVM."""
        return ClassicCheckSession(self.spark, conf)

    def end_former(self, owner: Owner, checkpoint: str) -> None:
        """There is none: a query dies with its worker's JVM."""

    def noted(self, folder: str) -> tuple[NotedQuery, ...]:
        """None, for the same reason."""
        del folder
        return ()

    def end_noted(self, query: NotedQuery) -> None:
        """There is none."""

    def resources(self, folder: str | None) -> WorkerResources:
        """By the JVM, the system's files of processes, and the disk, if the checkpoints are on one."""
        if self._resources is None:
            self._resources = ClassicResources(self.jvm, folder)
        return self._resources.look()

    def checkpoint(self, place: str) -> HadoopCheckpoint:
        """Through Hadoop."""
        return HadoopCheckpoint(self.spark, place)

    def kill(self) -> bool:
        """By killing its JVM, whatever that is doing."""
        self.jvm.kill()
        return True

    def close(self) -> None:
        """Stop Spark and end its JVM, whatever state it is in."""
        if self.groups is not None:
            self.groups.close()
        self.jvm.close(self._stop)

    def _stop(self) -> None:
        """As long as the JVM answers."""
        try:
            if self.brokers is not None:
                self.brokers.close()
        finally:
            self.spark.stop()


def _context(chosen: Mapping[str, str], jvm: Jvm) -> SparkContext:
    """The context; PySpark itself heeds `spark.pyspark.python` in jobs that `spark-submit` starts only."""
    conf = SparkConf(loadDefaults=False)
    for key, value in chosen.items():
        conf.set(key, value)
    context = SparkContext(conf=conf, gateway=jvm.gateway)
    context.pythonExec = conf.get(PYTHON, context.pythonExec) or context.pythonExec
    return context


def _chosen(settings: SparkSettings) -> dict[str, str]:
    local = LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    chosen = {**DEFAULTS, **local, **settings.conf}
    chosen["spark.app.name"] = settings.app_name
    chosen["spark.master"] = settings.master
    return chosen


def _quieten_py4j() -> None:
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J tells the root logger of every broken connection, with a trace; the JVM's death is told once."""
    return record.module != "java_gateway"
