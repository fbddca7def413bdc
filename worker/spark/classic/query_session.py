"""What one query needs in the worker's own JVM: a session, its checkpoint, its gate, its output."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from worker.spark.backend import QuerySession
from worker.spark.batches.batch_gate import BatchGate, tell_of_refusal
from worker.spark.classic.active_session import make_active
from worker.spark.classic.callbacks import forget_functions
from worker.spark.classic.catalogs import close_catalogs
from worker.spark.classic.handle import JavaHandle
from worker.spark.classic.kafka_ends import fill_in_ends
from worker.spark.classic.plan_order import sources_of
from worker.spark.classic.pools import POOL
from worker.spark.classic.query_output import ClassicQueryOutput
from worker.spark.classic.statements import drop_escapes, require_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from definition.scheduling import Scheduling
    from worker.lag.offset_log import Order
    from worker.sinks.fence import Owner
    from worker.spark.classic.checkpoint import HadoopCheckpoint
    from worker.spark.classic.pools import Pools

_DRAIN_MS = 1000
"""How long listeners of an entry point's own may take to hear of the query's end."""


class ClassicQuerySession(QuerySession):
    """A session of Spark's, a checkpoint read through Hadoop, and batches that are done in this process."""

    writer_type = DataStreamWriter
    query_type = StreamingQuery

    def __init__(
        self,
        spark: SparkSession,
        owner: Owner,
        checkpoint: HadoopCheckpoint,
        may_write: Callable[[], bool],
        *,
        pools: Pools,
    ) -> None:
        """`spark` is the query's own session, it may be planned there already; `pools` are of its Spark."""
        self.spark = spark
        make_active(spark)
        self.checkpoint = checkpoint
        self.gate: BatchGate = BatchGate(may_write, partial(tell_of_refusal, owner))
        self.output = ClassicQueryOutput(
            owner, self.gate, self.checkpoint.mark, partial(fill_in_ends, self.spark)
        )
        self._pools = pools
        self._pool = owner.task
        self._query: Any = None

    def require_query(self, text: str) -> None:
        """By Spark's parser, without executing anything; nothing in it will find what calls Java."""
        require_query(self.spark, text)
        drop_escapes(self.spark)

    def sources_of(self, writer: DataStreamWriter) -> Order:
        """By the analysed plan, which Spark walks through in the same way."""
        frame: Any = writer._df  # noqa: SLF001 - where PySpark keeps it
        return sources_of(frame)

    def schedule(self, wanted: Scheduling | None) -> None:
        """By the pool of its name, which its jobs go into."""
        self._pools.prepare(self._pool, wanted)

    def inherit(self, made_of: str) -> None:
        """A query dies with its JVM, and that with its worker: one that is left is only fenced off."""
        del made_of

    def start(self, writer: DataStreamWriter, begin: Callable[[], None]) -> JavaHandle:
        """The query's own thread inherits the pool from the thread that starts it."""
        begin()
        context = self.spark.sparkContext
        context.setLocalProperty(POOL, self._pool)
        try:
            query = self.output.begin(writer.option("checkpointLocation", self.checkpoint.place))
            self._query = query._jsq  # noqa: SLF001 - where PySpark keeps it
            return JavaHandle(self.spark._jvm, query, self.gate)  # noqa: SLF001 - where PySpark keeps it
        finally:
            context._jsc.setLocalProperty(POOL, None)  # noqa: SLF001 - the only way to unset one

    def close(self) -> None:
        """Let go of the sinks, and of what Spark keeps of the session; that is forgotten with this object."""
        self.output.close()
        forget_functions(self.spark)
        with contextlib.suppress(Exception):  # a JVM that is gone keeps nothing
            _remove_listener_bus(self.spark)
        close_catalogs(self.spark, self._query)


def _remove_listener_bus(session: SparkSession) -> None:
    """Take away what Spark leaves at its own bus, which lives as long as the JVM.

    The first query of a session registers a bus for listeners of its queries there. Nothing in Spark takes
    it away: a session is not closed, only forgotten. Every start would leave one behind, to hear of every
    event.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - where PySpark keeps it
    context, queries = java.sparkContext(), java.streams()
    bus = queries.getClass().getDeclaredField("listenerBus")
    bus.setAccessible(True)
    if len(queries.listListeners()):
        context.listenerBus().waitUntilEmpty(_DRAIN_MS)
    context.removeSparkListener(bus.get(queries))
