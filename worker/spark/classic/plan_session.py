"""Where a query is planned in the worker's own JVM, be it granted already or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.spark.backend import PlanSession
from worker.spark.classic.active_session import new_session
from worker.spark.classic.catalogs import close_catalogs
from worker.spark.classic.checkpoint import HadoopCheckpoint
from worker.spark.classic.query_session import ClassicQuerySession
from worker.spark.classic.rows import LIMIT_CONF
from worker.spark.classic.statements import drop_escapes, reads_only, require_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import SparkSession

    from worker.sinks.fence import Owner
    from worker.spark.classic.pools import Pools


class ClassicPlanSession(PlanSession):
    """A `newSession()`, with the way to the checkpoint; what it plans runs in no other."""

    def __init__(self, spark: SparkSession, conf: Mapping[str, str], checkpoint: str, pools: Pools) -> None:
        """`pools` are those of the Spark that `spark` is a session of."""
        self.spark = new_session(spark, {**LIMIT_CONF, **conf})
        self.checkpoint: HadoopCheckpoint = HadoopCheckpoint(self.spark, checkpoint)
        self._pools = pools

    def require_query(self, text: str) -> None:
        """By Spark's parser, without executing anything; nothing in it will find what calls Java."""
        require_query(self.spark, text)
        drop_escapes(self.spark)

    def reads_only(self, text: str, views: Collection[str]) -> bool:
        """By Spark's parser, which looks nothing up."""
        return reads_only(self.spark, text, views)

    def query_session(self, owner: Owner, may_write: Callable[[], bool]) -> ClassicQuerySession:
        """The same session, with a gate and an output."""
        return ClassicQuerySession(self.spark, owner, self.checkpoint, may_write, pools=self._pools)

    def close(self) -> None:
        """Let go of its catalogs; whatever else Spark keeps of a session goes with it."""
        close_catalogs(self.spark)
