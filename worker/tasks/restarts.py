"""How often, and how soon, a failing query is started again (protocol §6). Rules without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.waiting import Backoff

if TYPE_CHECKING:
    from definition.document import Restart

RESTART = Backoff(first_s=1.0, limit_s=60.0)
"""Five restarts in a row, the default limit, take about half a minute."""


@dataclass(frozen=True, slots=True)
class Failures:
    """When a task failed, as far as it still counts; in seconds by the worker's clock, oldest first."""

    times: tuple[float, ...] = ()

    def and_one(self, now: float, policy: Restart) -> Failures:
        """With another failure, at `now`; those that have left the policy's window are forgotten."""
        horizon = now - policy.window_ms / 1000
        return Failures((*(time for time in self.times if time > horizon), now))

    def restart_delay_s(self, policy: Restart, chance: float) -> float | None:
        """Seconds until the restart after the last failure; None if there were too many: the task is FAILED.

        Args:
            policy: the limit of the task's definition.
            chance: a random number in [0, 1), for the jitter.
        """
        if len(self.times) > policy.max_restarts:
            return None
        return RESTART.delay_s(len(self.times) - 1, chance)
