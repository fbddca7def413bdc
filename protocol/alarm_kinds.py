"""The kinds of alarms: what each looks at, the unit of its threshold, which fields of a rule go with it."""

from __future__ import annotations

from enum import Enum, StrEnum
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
    MANAGER_GONE = "manager_gone"
    MANAGER_LOOP_LAG = "manager_loop_lag"
    MANAGER_MEMORY = "manager_memory"
    DATABASE_FAILING = "database_failing"
    DATABASE_SLOW = "database_slow"


class About(Enum):
    """What an alarm is about. Those of managers and of the database are of no group, but of the herd."""

    TASK = "task"
    WORKER = "worker"
    MANAGER = "manager"
    DATABASE = "database"


class KindTraits(NamedTuple):
    """What goes with a kind.

    `unit` is that of thresholds and values; None where the condition holds or does not, and there is no
    threshold. One with a `window` looks at what came within it, one with a `floor` does not hold before that
    many milliseconds, whatever the threshold.
    """

    meaning: str
    unit: str | None = None
    about: About = About.TASK
    window: bool = False
    floor: bool = False

    @property
    def of_herd(self) -> bool:
        """Whether its alarms are of no group."""
        return self.about in {About.MANAGER, About.DATABASE}


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
        "what the checkpoints that a worker sees have gained", "bytes", about=About.WORKER, window=True
    ),
    AlarmKind.WORKER_OVERLOADED: KindTraits(
        "the load of a worker's tasks by its capacity", "load", about=About.WORKER
    ),
    AlarmKind.WORKER_HEAP: KindTraits(
        "the share of a worker's heap in use after a collection", "percent", about=About.WORKER
    ),
    AlarmKind.MANAGER_GONE: KindTraits(
        "a manager that has not ended in order says nothing", about=About.MANAGER
    ),
    AlarmKind.MANAGER_LOOP_LAG: KindTraits(
        "how late the event loop of a manager is", "s", about=About.MANAGER
    ),
    AlarmKind.MANAGER_MEMORY: KindTraits(
        "the share of its memory that a manager takes", "percent", about=About.MANAGER
    ),
    AlarmKind.DATABASE_FAILING: KindTraits(
        "the share of a manager's transactions that failed", "percent", about=About.DATABASE, window=True
    ),
    AlarmKind.DATABASE_SLOW: KindTraits(
        "how long a manager's transactions take on average", "s", about=About.DATABASE, window=True
    ),
}
