"""The kinds of alarms: what each looks at, the unit of its threshold, which fields of a rule go with it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class AlarmKind(StrEnum):
    """What a rule looks at (docs/alarms.md)."""

    LAG_ROWS = "lag_rows"
    LAG_SECONDS = "lag_seconds"
    STUCK = "stuck"
    SILENT = "silent"
    FAILED = "failed"
    RESTARTING = "restarting"
    STATE_MISMATCH = "state_mismatch"
    UNASSIGNED = "unassigned"
    QUARANTINE = "quarantine"
    STATE_SIZE = "state_size"
    STATE_GROWING = "state_growing"
    CHECKPOINT_GROWING = "checkpoint_growing"
    WORKER_OVERLOADED = "worker_overloaded"
    WORKER_HEAP = "worker_heap"


class KindTraits(NamedTuple):
    """What goes with a kind.

    `unit` is that of thresholds and values; None where the condition holds or does not, and there is no
    threshold. One `of_workers` is about a worker instead of a task. One with a `window` looks at what came
    within it, one with a `floor` does not hold before that many milliseconds, whatever the threshold.
    """

    meaning: str
    unit: str | None = None
    of_workers: bool = False
    window: bool = False
    floor: bool = False


TRAITS: Final[dict[AlarmKind, KindTraits]] = {
    AlarmKind.LAG_ROWS: KindTraits("how far a task is behind its sources", "rows"),
    AlarmKind.LAG_SECONDS: KindTraits("how old the first row is that a task has not read", "s"),
    AlarmKind.STUCK: KindTraits("time without a batch although there is input", "s"),
    AlarmKind.SILENT: KindTraits("time without rows, by the usual gap between rows", "times", floor=True),
    AlarmKind.FAILED: KindTraits("a task is FAILED or quarantined"),
    AlarmKind.RESTARTING: KindTraits("restarts after failures", "restarts", window=True),
    AlarmKind.STATE_MISMATCH: KindTraits("a task with an owner is in another state than its target"),
    AlarmKind.UNASSIGNED: KindTraits("a task that is to run has no owner"),
    AlarmKind.QUARANTINE: KindTraits("rows that were put aside", "rows", window=True),
    AlarmKind.STATE_SIZE: KindTraits("the state of a query", "bytes"),
    AlarmKind.STATE_GROWING: KindTraits("what the state of a query has gained", "bytes", window=True),
    AlarmKind.CHECKPOINT_GROWING: KindTraits(
        "what the checkpoints that a worker sees have gained", "bytes", of_workers=True, window=True
    ),
    AlarmKind.WORKER_OVERLOADED: KindTraits(
        "the load of a worker's tasks by its capacity", "load", of_workers=True
    ),
    AlarmKind.WORKER_HEAP: KindTraits(
        "the share of a worker's heap in use after a collection", "percent", of_workers=True
    ),
}
