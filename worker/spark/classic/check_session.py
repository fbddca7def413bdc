"""A check's session in the worker's own JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.spark.checks.check_session import CheckSession
from worker.spark.classic.active_session import new_session
from worker.spark.classic.catalogs import close_catalogs
from worker.spark.classic.plan_order import sources_of
from worker.spark.classic.pools import POOL
from worker.spark.classic.statements import drop_escapes, require_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from worker.lag.offset_log import Order


class ClassicCheckSession(CheckSession):
    """A `newSession()`, forgotten with this object."""

    def __init__(self, spark: SparkSession, conf: Mapping[str, str]) -> None:
        """To be made in the thread that does the check: its jobs have a pool of their own."""
        self.spark = new_session(spark, conf)
        self.spark.sparkContext.setLocalProperty(POOL, "sparkherd-checks")

    def require_query(self, text: str) -> None:
        """As of a query's session."""
        require_query(self.spark, text)
        drop_escapes(self.spark)

    def sources_of(self, frame: DataFrame) -> Order:
        """By the analysed plan."""
        return sources_of(frame)

    def refuse_unsupported(self, frame: DataFrame, output_mode: str) -> bool:
        """By the very checker that Spark asks before it starts a query."""
        jvm: Any = self.spark._jvm  # noqa: SLF001 - where PySpark keeps it
        java: Any = frame._jdf  # noqa: SLF001 - as above
        modes = jvm.org.apache.spark.sql.streaming.OutputMode
        mode = getattr(modes, output_mode.capitalize())()
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        checker.checkForStreaming(java.queryExecution().analyzed(), mode)
        return True

    def require_format(self, name: str) -> None:
        """By the name that a writer would look it up with."""
        jvm: Any = self.spark._jvm  # noqa: SLF001 - where PySpark keeps it
        java: Any = self.spark._jsparkSession  # noqa: SLF001 - as above
        sources = jvm.org.apache.spark.sql.execution.datasources.DataSource
        sources.lookupDataSource(name, java.sessionState().conf())

    def close(self) -> None:
        """Let go of its catalogs; whatever else Spark keeps of a session goes with it."""
        close_catalogs(self.spark)
