"""What is remembered of a task or a worker from one pass to the next, in memory only.

A manager that takes a group over has seen nothing yet: until it has, figures are lower bounds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from protocol.task_metrics import figure

if TYPE_CHECKING:
    from manager.core.alarms.facts import TaskFacts

SAMPLES: Final = 12
"""Of a window; what is between two of them is not told apart."""
GAPS_KEPT: Final = 16
GAPS_NEEDED: Final = 5
"""Fewer say nothing of what is usual."""


class Windowed:
    """How much a figure has gained within a window; one that falls is taken for a new count if it `restarts`.

    Times are in milliseconds of the monotonic clock.
    """

    __slots__ = ("_began_at", "_last", "_restarts", "_samples", "_total")

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self._began_at: int | None = None
        self._last: float | None = None
        self._total = 0.0
        self._samples: deque[tuple[int, float]] = deque()

    def take(self, value: float, now: int, window_ms: int) -> None:
        """The figure is `value` now."""
        if self._last is None:
            self._began_at = now
        else:
            fell = value < self._last
            self._total += value if fell and self._restarts else value - self._last
        self._last = value
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now - window_ms:
            samples.popleft()
        if not samples or now - samples[-1][0] >= window_ms // SAMPLES:
            samples.append((now, self._total))

    def gained(self) -> float | None:
        """Since the window began; None before the first figure."""
        return max(self._total - self._samples[0][1], 0.0) if self._samples else None

    def is_whole(self, now: int, window_ms: int) -> bool:
        """Whether all of the window has been seen."""
        return self._began_at is not None and now - self._began_at >= window_ms


@dataclass(slots=True)
class TaskSeen:
    """Of a task, under `token`, in a group that was taken up at `loaded_at`: when it was last seen to get on.

    `batch_at` and `rows_at` are moments of the monotonic clock in milliseconds: when the last batch, the last
    rows were seen to have come, or, unless `batch_seen`, `rows_seen`, since when nothing was. `gaps` are
    those between rows, in milliseconds. `windows` are by kind and length.
    """

    loaded_at: int | None = None
    token: int = -1
    batch_id: int | None = None
    batch_at: int = 0
    batch_seen: bool = False
    total: float | None = None
    rows_at: int = 0
    rows_seen: bool = False
    gaps: deque[int] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    windows: dict[tuple[str, int], Windowed] = field(default_factory=dict)

    def begin_anew(self, loaded_at: int | None) -> None:
        """What came meanwhile nobody has seen; what is usual stays so."""
        self.loaded_at, self.token = loaded_at, -1
        self.windows.clear()

    def look(self, facts: TaskFacts, now: int) -> None:
        """Take in how the task stands now. Another token begins anew, but for what is usual."""
        if facts.token != self.token:
            self.token, self.batch_id, self.total = facts.token, None, None
            self.batch_at = self.rows_at = now
            self.batch_seen = self.rows_seen = False
        self._look_at_batch(facts.batch_id, now)
        self._look_at_rows(figure(facts.metrics, "total_rows"), now)

    def _look_at_batch(self, batch_id: int | None, now: int) -> None:
        if batch_id is None or batch_id == self.batch_id:
            return
        if self.batch_id is not None:
            self.batch_at, self.batch_seen = now, True
        self.batch_id = batch_id

    def _look_at_rows(self, total: float | None, now: int) -> None:
        if total is None or total == self.total:
            return
        if self.total is not None:
            if self.rows_seen:
                self.gaps.append(now - self.rows_at)
            self.rows_at, self.rows_seen = now, True
        self.total = total

    @property
    def usual_gap_ms(self) -> int | None:
        """The longest of the last gaps; None while too few were seen."""
        return max(self.gaps) if len(self.gaps) >= GAPS_NEEDED else None

    def window(self, kind: str, window_ms: int, *, restarts: bool) -> Windowed:
        """What a figure has gained, for the rules of one kind with one window."""
        return _window(self.windows, kind, window_ms, restarts=restarts)


@dataclass(slots=True)
class WorkerSeen:
    """Of a worker."""

    windows: dict[tuple[str, int], Windowed] = field(default_factory=dict)

    def window(self, kind: str, window_ms: int) -> Windowed:
        """What a figure has gained, for the rules of one kind with one window."""
        return _window(self.windows, kind, window_ms, restarts=False)


def _window(
    windows: dict[tuple[str, int], Windowed], kind: str, window_ms: int, *, restarts: bool
) -> Windowed:
    found = windows.get((kind, window_ms))
    if found is None:
        found = windows[kind, window_ms] = Windowed(restarts=restarts)
    return found
