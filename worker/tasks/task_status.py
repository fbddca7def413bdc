"""What a task has done since this worker has it, whichever of its queries did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.executor import Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from protocol.states import TaskState
    from worker.executor import Progress


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as those who watch the worker see it.

    `idle_s` is how long ago its last batch was heard of, or its query was started; None without a query.
    `has_work` says that there is data for a batch.
    """

    task: str
    token: int
    state: TaskState
    cause: str | None
    batch_id: int | None
    metrics: Mapping[str, Any]
    totals: Totals
    restarts: int
    idle_s: float | None
    has_work: bool


class Record:
    """Follows the queries of one task; `now` is in seconds, `restarts` are those after failures."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.restarts = 0
        self._now = now
        self._earlier = Totals()
        self._latest: Progress | None = None
        self._heard_at: float | None = None

    @property
    def totals(self) -> Totals:
        """Of all its queries together."""
        return self._earlier if self._latest is None else self._earlier + self._latest.totals

    @property
    def idle_s(self) -> float | None:
        """Seconds since the last news of its query."""
        return None if self._heard_at is None else self._now() - self._heard_at

    def begin(self) -> None:
        """A query has started."""
        self._heard_at = self._now()

    def look(self, progress: Progress | None) -> None:
        """Take in what its query says."""
        if progress is None:
            return
        if self._latest is None or progress.batch_id != self._latest.batch_id:
            self._heard_at = self._now()
        self._latest = progress

    def end(self) -> None:
        """The query is gone; what it did counts."""
        self._earlier = self.totals
        self._latest = self._heard_at = None
