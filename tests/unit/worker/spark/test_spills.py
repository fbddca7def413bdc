"""What a query has spilled, by a store of jobs and stages that is none of Spark's."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from py4j.protocol import Py4JJavaError

from worker.spark.classic.spills import Spills

DROPPED = None
"""What is known of a stage that Spark keeps no more."""
NOT_KEPT = Py4JJavaError("java.util.NoSuchElementException", MagicMock())


class Store:
    """Spark's store of jobs and stages; each look takes `took_s` seconds of `time`."""

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[str, dict[int, int | None]]] = {}
        self.time = 0.0
        self.took_s = 0.0
        self.asked: list[int] = []
        self.dropped: list[int] = []

    def spills(self) -> Spills:
        """Of a query whose jobs are the group `run`."""
        jvm, query = MagicMock(), MagicMock()
        query.runId.return_value.toString.return_value = "run"
        context = query.sparkSession.return_value.sparkContext.return_value
        context.statusTracker.return_value.getJobIdsForGroup = self._ids
        context.statusStore.return_value = self
        jvm.java.util.Arrays.toString = json.dumps
        return Spills(jvm, query, lambda: self.time)

    def _ids(self, group: str) -> list[int]:
        assert group == "run"
        self.time += self.took_s
        return sorted([*self.jobs, *self.dropped], reverse=True)

    def job(self, job: int) -> Any:
        self.asked.append(job)
        if job not in self.jobs:
            raise NOT_KEPT
        status, stages = self.jobs[job]
        stage_ids = SimpleNamespace(mkString=lambda *_: json.dumps([*stages]))
        return SimpleNamespace(
            status=lambda: SimpleNamespace(toString=lambda: status), stageIds=lambda: stage_ids
        )

    def lastStageAttempt(self, stage: int) -> Any:  # noqa: N802 - Spark's
        found = next(stages[stage] for _, stages in self.jobs.values() if stage in stages)
        if found is DROPPED:
            raise NOT_KEPT
        return SimpleNamespace(diskBytesSpilled=lambda: found)


def test_stages_of_all_jobs_add_up_and_each_job_is_looked_at_once() -> None:
    """Also of one that failed."""
    store = Store()
    spills = store.spills()
    store.jobs = {1: ("SUCCEEDED", {10: 5, 11: 7}), 2: ("FAILED", {12: 100})}
    assert spills.total() == 112
    store.jobs[5] = ("SUCCEEDED", {13: 1})
    assert spills.total() == 113
    assert store.asked == [1, 2, 5]


def test_a_job_that_is_not_over_by_the_store_is_looked_at_again() -> None:
    """And what comes after it: the store hears of things later than the query."""
    store = Store()
    spills = store.spills()
    store.jobs = {1: ("SUCCEEDED", {10: 5}), 2: ("RUNNING", {11: 7}), 3: ("SUCCEEDED", {12: 9})}
    assert spills.total() == 5
    store.jobs[2] = ("SUCCEEDED", {11: 8})
    assert spills.total() == 22


def test_looking_takes_a_hundredth_of_the_time_at_most() -> None:
    """However long a look takes."""
    store = Store()
    spills = store.spills()
    store.took_s = 0.5
    store.jobs = {1: ("SUCCEEDED", {10: 5})}
    assert spills.total() == 5
    store.jobs[2] = ("SUCCEEDED", {11: 7})
    store.time = 49.5
    assert spills.total() == 5
    store.time = 50.0
    assert spills.total() == 12


def test_what_spark_has_dropped_counts_for_nothing() -> None:
    """A stage of a job that it still has, and a job whose id it has just told."""
    store = Store()
    spills = store.spills()
    store.jobs = {2: ("SUCCEEDED", {10: 5, 11: DROPPED, 12: 7})}
    store.dropped = [1]
    assert spills.total() == 12
    assert store.asked == [1, 2]
