"""How late an event loop is: what blocks it delays heartbeats and every answer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from telemetry.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import Histogram

PERIOD_S = 0.5

LOOP_LAG = Metric(
    "sparkherd_event_loop_lag_seconds",
    "histogram",
    f"How late the event loop comes to what is due, looked at every {PERIOD_S:g} s.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


class LoopLag:
    """Asks to be called every `PERIOD_S` seconds, and observes how much later that happens."""

    def __init__(self, histogram: Histogram, now: Callable[[], float] = time.monotonic) -> None:
        self._histogram = histogram
        self._now = now
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._worst = 0.0

    def start(self) -> None:
        """Begin, on the running loop."""
        self._due = self._now() + PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._tick)

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()

    def worst(self) -> float:
        """How late it was at most since this was asked before, in seconds."""
        worst, self._worst = self._worst, 0.0
        return worst

    def _tick(self) -> None:
        late = max(self._now() - self._due, 0.0)
        self._worst = max(self._worst, late)
        self._histogram.observe(late)
        self.start()
