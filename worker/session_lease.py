"""The worker's lease on itself: without word from the manager it stops before its tasks are given away.

The manager renews a member's session when a request *arrives* (protocol §3.3), which is never before it
was sent. Counted from the sending, the lease runs out first. Then the queries are stopped, and
those without a fence are over before the manager lets others have their tasks (`protocol.worker_lease`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from protocol.worker_lease import KILL_PERCENT, LEASE_PERCENT, part_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.clock import Clock

_NEVER = float("-inf")


def lease_s(session_timeout_ms: int) -> float:
    """How long a worker with that session timeout may go on by itself, in seconds."""
    return part_of(session_timeout_ms, LEASE_PERCENT) / 1000


def over_s(session_timeout_ms: int) -> float:
    """How long after its last confirmation nothing without a fence may run any more, in seconds."""
    return part_of(session_timeout_ms, KILL_PERCENT) / 1000


class SessionLease:
    """Held from the first accepted request on, for `duration_s` seconds after the sending of the last one.

    Whatever looks at it, looks at the clock first; so a process that was frozen finds out before it does
    anything else. `expired` is called, in the event loop, once each time the lease runs out.
    """

    def __init__(self, duration_s: float, clock: Clock, expired: Callable[[], None]) -> None:
        self._duration_s = duration_s
        self._clock = clock
        self._expired = expired
        self._deadline = _NEVER
        self._held = False
        self._taken = asyncio.Event()

    def may_write(self) -> bool:
        """Whether the worker may still believe that its tasks are its own. May be called from any thread."""
        return self._clock.now() < self._deadline

    @property
    def remaining_s(self) -> float:
        """How long the worker may still write, in seconds."""
        return max(self._deadline - self._clock.now(), 0.0)

    def renew(self, sent_at: float) -> None:
        """A request that was sent at `sent_at` has been accepted."""
        self.check()
        self._deadline = max(self._deadline, sent_at + self._duration_s)
        self._held = self.may_write()
        if self._held:
            self._taken.set()

    def surrender(self) -> None:
        """The tasks are lost already: nothing may be written from now on, and nothing is left to run out."""
        self._held = False
        self._deadline = _NEVER
        self._taken.clear()

    def check(self) -> None:
        """Notice that the lease has run out, if it has."""
        if self._held and not self.may_write():
            self.surrender()
            self._expired()

    async def watch(self) -> None:
        """Check at each deadline, for ever."""
        while True:
            await self._taken.wait()
            await self._clock.sleep(max(self._deadline - self._clock.now(), 0))
            self.check()
