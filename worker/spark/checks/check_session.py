"""What a check of a definition needs of Spark: a session of its own, which can be told to stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from worker.lag.offset_log import Order


class CheckSession(ABC):
    """A session in which nothing is written, and no query is started."""

    spark: SparkSession

    @abstractmethod
    def require_query(self, text: str) -> None:
        """As `worker.spark.backend.QuerySession.require_query`."""

    def sources_of(self, frame: DataFrame) -> Order:
        """As `worker.spark.backend.QuerySession.sources_of`, of a query that is not written yet."""
        del frame
        return ()

    @abstractmethod
    def refuse_unsupported(self, frame: DataFrame, output_mode: str) -> bool:
        """Raise what Spark would when it started a query that streams `frame`; whether that can be asked.

        Raises:
            AnalysisException: it cannot be streamed, or not in this output mode.
        """

    @abstractmethod
    def require_format(self, name: str) -> None:
        """Raise what Spark would when it looked for a sink of that format, if it can be asked.

        Raises:
            PySparkException: there is none.
        """

    def interrupt(self) -> None:
        """Have Spark drop what this session computes at the moment; may be called from any thread."""
        self.spark.interruptAll()

    @abstractmethod
    def close(self) -> None:
        """Let go of the session. Never blocks for long."""
