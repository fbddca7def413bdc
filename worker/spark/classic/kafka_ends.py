"""What Spark's Kafka source lacks when a query begins with a batch that was planned before it.

At the end of each batch Spark 4.1 compares what was read with the ends of the topics, as they were when the
batch was planned. Of a batch that a former owner has planned the source has no ends, and the query fails with
a NullPointerException when the batch is done (SPARK-55271, SPARK-57438): who takes over a batch under way
would have to start twice, and five of these within minutes make a task FAILED. No ends at all are as good.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE: Final = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
_ENDS: Final = "latestPartitionOffsets"


def fill_in_ends(session: SparkSession) -> None:
    """Have the Kafka sources of a query without the ends of their topics know of none.

    To be called inside the query's first batch: before it there are no sources, after it they were asked.

    Args:
        session: the query's own.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
    queries: Any = session._jsparkSession.streams()  # noqa: SLF001 - likewise
    with suppress(Py4JError):  # of another Spark, which keeps them elsewhere, and may do without
        for query in queries.active():
            sources = query.streamingQuery().sources()
            for number in range(sources.length()):
                _fill_in(jvm, sources.apply(number))


def _fill_in(jvm: Any, source: Any) -> None:
    if source.getClass().getName() != _SOURCE:
        return
    ends = source.getClass().getDeclaredField(_ENDS)
    ends.setAccessible(True)
    if ends.get(source) is None:
        ends.set(source, jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()))
