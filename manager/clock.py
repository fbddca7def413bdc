"""The two clocks of the manager."""

from __future__ import annotations

import time

from manager.core.turn import ClockReading

NS_PER_MS = 1_000_000


def read_clocks() -> ClockReading:
    """The present moment."""
    return ClockReading(time.monotonic_ns() // NS_PER_MS, time.time_ns() // NS_PER_MS)
