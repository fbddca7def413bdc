"""A query's place in the worker's own JVM."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from worker.spark.backend import Site
from worker.spark.batch import Gate
from worker.spark.classic.checkpoint import HadoopCheckpoint
from worker.spark.classic.handle import JavaHandle
from worker.spark.classic.listeners import remove_listener_bus
from worker.spark.classic.outlet import LocalOutlet
from worker.spark.classic.statements import drop_java_callers, require_query
from worker.spark.logs import tell_of_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from worker.sinks.marks import Owner

_POOL = "spark.scheduler.pool"


class ClassicSite(Site):
    """A `newSession()`, a checkpoint read through Hadoop, and batches that are done in this process."""

    writer_type = DataStreamWriter
    query_type = StreamingQuery

    def __init__(
        self,
        spark: SparkSession,
        owner: Owner,
        conf: Mapping[str, str],
        checkpoint: str,
        may_write: Callable[[], bool],
    ) -> None:
        self.spark = spark.newSession()
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        self.checkpoint = HadoopCheckpoint(spark, checkpoint)
        self.gate: Gate = Gate(may_write, partial(tell_of_refusal, owner))
        self.outlet = LocalOutlet(owner, self.gate, self.checkpoint.mark)
        self._pool = owner.task

    def require_query(self, text: str) -> None:
        """By Spark's parser, without executing anything; nothing in it will find what calls Java."""
        require_query(self.spark, text)
        drop_java_callers(self.spark)

    def inherit(self) -> None:
        """A query dies with its JVM, and that with its worker: one that is left is only fenced off."""

    def start(self, writer: DataStreamWriter, begin: Callable[[], None]) -> JavaHandle:
        """The query's own thread inherits the pool from the thread that starts it."""
        begin()
        context = self.spark.sparkContext
        context.setLocalProperty(_POOL, self._pool)
        try:
            query = writer.option("checkpointLocation", self.checkpoint.place).start()
            return JavaHandle(query, self.gate)
        finally:
            context._jsc.setLocalProperty(_POOL, None)  # noqa: SLF001 - the only way to unset one

    def close(self) -> None:
        """Let go of the sinks, and of what Spark keeps of the session; that is forgotten with this object."""
        self.outlet.close()
        with contextlib.suppress(Exception):  # a JVM that is gone keeps nothing
            remove_listener_bus(self.spark)
