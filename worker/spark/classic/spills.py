"""What the stages of one query have spilled to disk: Spark's records of batches do not say."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Callable

_OVER: Final = frozenset({"SUCCEEDED", "FAILED"})
_SHARE: Final = 99
"""One part in `_SHARE` + 1 of the time goes into looking, however many jobs a batch has."""


class Spills:
    """Adds up the stages of a query's jobs, as long as Spark keeps these.

    It keeps `spark.ui.retainedJobs` and `spark.ui.retainedStages` of all queries together. Of too many stages
    it drops those first that it has passed over, even those of a job that has just ended.

    The counters of executors are not asked first: py4j cannot find the methods of Spark 4.3's `SparkEnv`, and
    its connection breaks with that.
    """

    def __init__(self, jvm: Any, query: Any, now: Callable[[], float] = time.monotonic) -> None:
        """`query` is Java's own, `now` the clock, in seconds."""
        self._jvm = jvm
        self._run_id = query.runId().toString()  # the group of all jobs that Spark starts for it
        context = query.sparkSession().sparkContext()
        self._tracker, self._store = context.statusTracker(), context.statusStore()
        self._now = now
        self._due = now()
        self._last_job = -1
        self._total = 0

    def total(self) -> int:
        """Bytes on disk, of all jobs that are over; as of the last look, if another one would be too soon.

        Spark's store may hear of the end of a job after the query does: the next look finds that.
        """
        began = self._now()
        if began >= self._due:
            self._look()
            ended = self._now()
            self._due = ended + _SHARE * (ended - began)
        return self._total

    def _look(self) -> None:
        ids = json.loads(self._jvm.java.util.Arrays.toString(self._tracker.getJobIdsForGroup(self._run_id)))
        for job in sorted(job for job in ids if job > self._last_job):
            try:
                data = self._store.job(job)
            except Py4JJavaError:  # dropped since its id was told
                continue
            if data.status().toString() not in _OVER:
                return
            self._total += sum(map(self._of_stage, json.loads(data.stageIds().mkString("[", ",", "]"))))
            self._last_job = job

    def _of_stage(self, stage: int) -> int:
        """One that Spark passed over has spilled nothing; of one that it has dropped, nothing is known."""
        try:
            return int(self._store.lastStageAttempt(stage).diskBytesSpilled())
        except Py4JJavaError:
            return 0
