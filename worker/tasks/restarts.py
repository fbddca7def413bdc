"""How often, and how soon, a failing query is started again (protocol §6). Rules without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.waiting import Backoff

if TYPE_CHECKING:
    from definition.document import Restart

RESTART = Backoff(first_s=1.0, limit_s=60.0)
"""Five restarts in a row, the default limit, take about half a minute."""
OUTAGE = Backoff(first_s=1.0, limit_s=15.0)
"""While what a query needs is out of reach: the task is to go on soon after that is back.

A try makes a session and raises the fence in the sink, so that whoever had the task before writes nothing
meanwhile; then it waits for brokers, ten seconds at most.
"""


@dataclass(frozen=True, slots=True)
class Failures:
    """When a task failed, as far as it still counts; in seconds by the worker's clock, oldest first.

    `outages` are those times at which only what it needs was out of reach. They do not count against it:
    brokers that are away for an hour leave a task with all its restarts.
    """

    times: tuple[float, ...] = ()
    outages: tuple[float, ...] = ()

    def and_one(self, now: float, policy: Restart, *, outage: bool = False, again: bool = False) -> Failures:
        """With another failure, at `now`; those that have left the policy's window are forgotten.

        Unless the query has ended `again` as the one before it did: a limit that no query keeps, however long
        each of them takes to exceed it, is to come to an end.
        """
        horizon = now - policy.window_ms / 1000
        times = self.times if again else tuple(time for time in self.times if time > horizon)
        outages = tuple(time for time in self.outages if time > horizon)
        return Failures(times, (*outages, now)) if outage else Failures((*times, now), outages)

    @property
    def is_outage(self) -> bool:
        """Whether the last one was one."""
        return bool(self.outages) and self.outages[-1] >= max(self.times, default=self.outages[-1])

    def restart_delay_s(self, policy: Restart, chance: float) -> float | None:
        """Seconds until the restart after the last failure; None if there were too many: the task is FAILED.

        Args:
            policy: the limit of the task's definition.
            chance: a random number in [0, 1), for the jitter.
        """
        if self.is_outage:
            return OUTAGE.delay_s(len(self.outages) - 1, chance)
        if len(self.times) > policy.max_restarts:
            return None
        return RESTART.delay_s(len(self.times) - 1, chance)
