"""What a task is doing, and what it has done since this worker has it, whichever of its queries did it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Any, Final

import structlog

from definition.left_out import Reasons
from protocol.messages.ownership import MAX_CAUSE_LENGTH, TaskReport
from protocol.states import TaskState
from telemetry.secrets import scrub
from worker.left_out import LeftOut
from worker.query_engine import Progress, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from protocol.messages.lag import TaskLag
    from worker.query_engine import Query


MEMORY_S: Final = 60.0
"""What happened that long ago counts a third of what happens now: a load is no matter of one slow batch."""
QUIET_S: Final = 2.0
"""A query that has had no work for so long after its start has none that it could begin with."""
WARM_UP_S: Final = 30.0
"""Nothing is said of a task sooner: the first batches of a query are none like the later ones."""


class Load:
    """The share of the time that a query's batches take, times the capacity of the worker they run on."""

    def __init__(self, capacity: float, now: float) -> None:
        self._capacity = capacity
        self._since = self._looked_at = now
        self._batch_id: int | None = None
        self._share = 0.0

    def observe(self, batch_id: int | None, batch_ms: float, now: float) -> None:
        """The last batch a query has finished and what it took; those between two looks count as it does.

        Args:
            batch_id: of the last finished batch, None before the first.
            batch_ms: how long it took, in milliseconds.
            now: the time of the look, in seconds.
        """
        passed = now - self._looked_at
        if passed <= 0:
            return
        batches = 0 if batch_id is None or self._batch_id is None else max(batch_id - self._batch_id, 0)
        busy = batches * batch_ms / 1000 / passed
        kept = exp(-passed / MEMORY_S)
        self._share = kept * self._share + (1 - kept) * busy
        self._looked_at = now
        self._batch_id = batch_id

    def measured(self) -> float | None:
        """The load to two places, lest it be news every second; None while too little was seen of it."""
        watched = self._looked_at - self._since
        if watched < WARM_UP_S:
            return None
        share = min(self._share / (1 - exp(-watched / MEMORY_S)), 1.0)
        return round(self._capacity * share, 2)


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A task as those who watch the worker see it.

    `idle_s` is how long ago its last batch was heard of, or its query was started; None without a query.
    `has_work` says that there is data for a batch, `lag` how far it was behind at the last look. `reasons`
    are what its rows may be left out for.
    """

    task: str
    token: int
    state: TaskState
    cause: str | None
    batch_id: int | None
    metrics: Mapping[str, Any]
    totals: Totals
    restarts: int
    outages: int
    idle_s: float | None
    has_work: bool
    lag: TaskLag | None = None
    reasons: tuple[str, ...] = ()


class TaskStatus:
    """State, cause and figures of one task.

    `restarts` are those after failures, `outages` those after failures at which only what it needs was out of
    reach.

    Args:
        group: whose task it is.
        task: its name.
        token: the one it is owned under.
        now: the worker's clock, in seconds.
        capacity: of the worker, for the task's load.
        changed: is called when there is something new to report at once.
    """

    def __init__(
        self,
        group: str,
        task: str,
        token: int,
        *,
        now: Callable[[], float],
        capacity: float,
        changed: Callable[[], None],
    ) -> None:
        self.state = TaskState.STARTING
        self.cause: str | None = None
        self.restarts = 0
        self.outages = 0
        self._task = task
        self._token = token
        self._now = now
        self._capacity = capacity
        self._changed = changed
        self._query: Query | None = None
        self._checkpoint: str | None = None
        self._committed: int | None = None
        self._progress = Progress(None)
        self._load: Load | None = None
        self._earlier = Totals()
        self._reasons = Reasons()
        self._latest: Progress | None = None
        self._heard_at: float | None = None
        self._lag: TaskLag | None = None
        self._trouble: str | None = None
        self._beyond: str | None = None
        self._exceeded = Counter[str]()
        self._asks_for_quarantine = False
        self._revision: int | None = None
        self._log = log.bind(group=group, task=task)

    @property
    def is_started(self) -> bool:
        """Whether its start takes no more time: it has done a batch, has none to do, or does not run."""
        if self._query is None:
            return self.state is not TaskState.STARTING
        is_idle = self._heard_at is not None and self._now() - self._heard_at > QUIET_S
        return self._query.progress() is not None or (is_idle and not self._query.has_work)

    def tell(self, state: TaskState, cause: str | None = None) -> None:
        """The task has come to `state`; `cause` says why, one line first."""
        self.state = state
        self._asks_for_quarantine, self._revision = False, None
        self.cause = scrub(cause, MAX_CAUSE_LENGTH) if cause else None
        brief = {"cause": self.cause.partition("\n")[0]} if self.cause else {}
        self._log.info("task changed state", state=state.value, token=self._token, **brief)
        self._changed()

    def tell_last(self, state: TaskState, cause: str | None, revision: int | None) -> None:
        """It has come to a state in which it is nobody's.

        Args:
            state: STOPPED or COMPLETED.
            cause: why it is not settled, one line first.
            revision: the group's `tasks_revision` as of which its definition and its target were known, None
                if that is not known.
        """
        self.tell(state, cause)
        self._revision = revision

    def ask_for_quarantine(self, cause: str, revision: int | None) -> None:
        """It is FAILED, and the manager is to give it to nobody any more.

        Args:
            cause: why, one line first.
            revision: as `tell_last` has it.
        """
        self.tell(TaskState.FAILED, cause)
        self._asks_for_quarantine, self._revision = True, revision

    def may_leave_out(self, reasons: Reasons) -> None:
        """What its rows may be left out for from now on; what is no reason any more is not counted on.

        Else each change of its definition could bring others, without bound.
        """
        self._reasons = reasons
        totals = self._earlier
        kept = {name: rows for name, rows in totals.left_out.reasons.items() if name in reasons.names}
        left_out = LeftOut(totals.left_out.dropped, totals.left_out.quarantined, kept)
        self._earlier = replace(totals, left_out=left_out)

    def count_failure(self, *, outage: bool) -> None:
        """It has failed, and will be started again."""
        if outage:
            self.outages += 1
        else:
            self.restarts += 1

    def begin(self, query: Query) -> None:
        """A query of it has started."""
        self._query, self._checkpoint, self._committed = query, query.checkpoint, query.committed
        self._heard_at = self._now()
        self._load = Load(self._capacity, self._now())
        self.tell(TaskState.RUNNING)

    def end(self) -> None:
        """The query is gone; what it did counts."""
        self._look()
        self._earlier = self._totals
        self._latest = self._heard_at = self._query = self._load = self._trouble = self._beyond = None

    def count_exceeded(self, limit: str) -> None:
        """The task has begun to take more than a limit of its definition allows."""
        self._exceeded[limit] += 1
        self._changed()

    def tell_beyond(self, cause: str | None) -> None:
        """Which limits its query exceeds, None if it keeps them all; that it stands still matters more."""
        self._beyond = cause
        self.tell(self.state, self._trouble or cause)

    def note_lag(self, lag: TaskLag | None) -> None:
        """How far it is behind, by a look at what it reads; None if that is not known any more."""
        self._lag = lag

    def report(self) -> TaskReport:
        """For the manager."""
        self._look()
        return TaskReport(
            task=self._task,
            token=self._token,
            state=self.state,
            batch_id=self._progress.batch_id,
            committed=self._committed,
            metrics=self._metrics() or None,
            cause=self.cause,
            checkpoint=None if self._progress.batch_id is None else self._checkpoint,
            lag=self._lag,
            quarantine=self._asks_for_quarantine,
            tasks_revision=self._revision,
        )

    def view(self) -> TaskSnapshot:
        """For those who watch the worker."""
        self._look()
        return TaskSnapshot(
            task=self._task,
            token=self._token,
            state=self.state,
            cause=self.cause,
            batch_id=self._progress.batch_id,
            metrics=self._progress.metrics,
            totals=self._totals,
            restarts=self.restarts,
            outages=self.outages,
            idle_s=None if self._heard_at is None else self._now() - self._heard_at,
            has_work=self._query is not None and self._query.has_work,
            lag=self._lag,
            reasons=self._reasons.names,
        )

    @property
    def _totals(self) -> Totals:
        """Of all its queries together."""
        return self._earlier if self._latest is None else self._earlier + self._latest.totals

    def _look(self) -> None:
        """Take in what its query says."""
        if self._query is None:
            return
        if self._query.trouble != self._trouble:
            self._trouble = self._query.trouble
            self.tell(self.state, self._trouble or self._beyond)
        if (progress := self._query.progress()) is None:
            return
        if self._latest is None or progress.batch_id != self._latest.batch_id:
            self._heard_at = self._now()
        self._progress = self._latest = progress

    def _metrics(self) -> dict[str, Any]:
        """What the engine tells of the last batch, what all have cost and left out, and the task's load."""
        metrics = self._progress.metrics and {**self._progress.metrics, **self._left_out(), **self._costs()}
        if self._exceeded:
            metrics = {**metrics, "exceeded": dict(self._exceeded)}
        if self._load is None or "batch_ms" not in metrics:
            return metrics
        self._load.observe(self._progress.batch_id, metrics["batch_ms"], self._now())
        load = self._load.measured()
        return metrics if load is None else {**metrics, "load": load}

    def _left_out(self) -> dict[str, Any]:
        """Since this worker has the task, so that a new token says that it begins anew."""
        left_out = self._totals.left_out
        if not left_out and not self._reasons.names:
            return {}
        counts = {"dropped": left_out.dropped, "quarantined": left_out.quarantined}
        return {**counts, "left_out": left_out.reasons}

    def _costs(self) -> dict[str, int]:
        """Since this worker has the task, too; without what does not apply to it."""
        costs = self._totals.costs
        told = {name: getattr(costs, name) for name in ("late_batches", "late_rows", "spilled_bytes")}
        return {name: count for name, count in told.items() if count is not None}
