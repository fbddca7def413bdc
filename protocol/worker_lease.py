"""How long a worker that is not heard goes on, and when others may have what it ran (docs/exactly-once.md).

All of it counts from one request that the manager has accepted: on the worker from its sending, on the
manager from its arrival, which is never before it. So what is below happens in this order.
"""

from __future__ import annotations

from typing import Final

LEASE_PERCENT: Final = 90
"""Percent of the session timeout for which a worker, and a token without a fence, may be believed in."""
KILL_PERCENT: Final = 115
"""Percent after which the worker kills whatever still runs without a fence, and itself with it.

Until then its queries stop in order: a quarter of a session is 2.5 s of the default, and the last of 32
queries takes as long as that on a machine that is far too busy."""
REASSIGN_PERCENT: Final = 125
"""Percent after which the manager gives a task without a fence to others.

The tenth before it is for killing a process: that takes milliseconds, but a busy machine may come late to
it."""


def part_of(session_timeout_ms: int, percent: int) -> int:
    """So many percent of a session timeout, in ms."""
    return session_timeout_ms * percent // 100
