"""A manager that also tells for how long its event loop was held: `… DATABASE`, and SIGUSR1 to ask."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time

import structlog
import uvloop

from manager.daemon import run
from manager.settings import ManagerSettings

PERIOD_S = 0.001
DELAY_MS = 2000
"""Long enough for the members of a benchmark to be gathered in one generation."""
IDLE_MS = 3_600_000
"""Members of a benchmark keep silent for as long as it takes."""


class HoldWatch:
    """Comes back every millisecond; what the loop's thread has worked in between is how long it was held.

    Processor time is counted, so that other processes of the machine make nothing longer.
    """

    def __init__(self) -> None:
        self._longest = 0.0
        self._before = 0.0

    def begin(self) -> None:
        """From now on, on the running loop."""
        self._before = time.thread_time()
        asyncio.get_running_loop().call_later(PERIOD_S, self._tick)

    def tell(self) -> None:
        """Print the longest time since this was asked before, in milliseconds."""
        sys.stdout.write(f"{self._longest * 1000:.3f}\n")
        sys.stdout.flush()
        self._longest = 0.0

    def _tick(self) -> None:
        self._longest = max(self._longest, time.thread_time() - self._before)
        self.begin()


def started(url: str) -> None:
    """It serves requests."""
    watch = HoldWatch()
    watch.begin()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, watch.tell)
    sys.stdout.write(f"listening on {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    settings = ManagerSettings(
        listen="127.0.0.1:0",
        database=sys.argv[1],
        initial_rebalance_delay_ms=DELAY_MS,
        idle_timeout_ms=IDLE_MS,
    )
    sys.exit(uvloop.run(run(settings, started)))
