"""The pools of Spark's fair scheduler: one a task, with what its definition says of its share.

Spark makes a pool of weight 1 for each name that it does not know. One with other figures has to be there
before the first job of that name; what `spark.scheduler.allocation.file` would bring is read once, when Spark
starts, and knows nothing of tasks that come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from definition.scheduling import Scheduling
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POOL: Final = "spark.scheduler.pool"
"""Spark's name for the pool of a thread's jobs."""
_MODE: Final = "spark.scheduler.mode"
_FAIR: Final = "FAIR"


class Pools:
    """Those of one Spark; any thread may ask, one at a time for each task."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        context: Any = spark.sparkContext._jsc  # noqa: SLF001 - likewise
        self._root: Any = context.sc().taskScheduler().rootPool()
        self._made: set[str] = set()

    def prepare(self, name: str, wanted: Scheduling | None) -> None:
        """Have a task's next jobs find a pool of its name with the figures that it wants.

        Without any, it is Spark's own, or one of the user's file. What a former query of the task still has
        in a pool that is replaced is over: it only has to give its cores back, which goes on.

        Raises:
            QueryError: this Spark has no pools.
        """
        if wanted is None:
            if name in self._made:
                self._made.remove(name)
                self._remove(self._root.getSchedulableByName(name))
            return
        if self._root.schedulingMode().toString() != _FAIR:
            raise QueryError.at(
                "scheduling",
                f"has no effect here: this worker's --spark-conf {_MODE} is not {_FAIR}",
                permanent=True,
            )
        self._replace(name, wanted)

    def _replace(self, name: str, wanted: Scheduling) -> None:
        found = self._root.getSchedulableByName(name)
        if found is not None and _figures(found) == wanted:
            return
        self._remove(found)
        scheduler = self._jvm.org.apache.spark.scheduler
        mode = scheduler.SchedulingMode.FIFO()  # among the jobs of one task, as in the pools that Spark makes
        self._root.addSchedulable(scheduler.Pool(name, mode, wanted.min_share, wanted.weight))
        self._made.add(name)

    def _remove(self, pool: Any) -> None:
        if pool is not None:
            self._root.removeSchedulable(pool)


def _figures(pool: Any) -> Scheduling:
    return Scheduling(weight=pool.weight(), min_share=pool.minShare())
