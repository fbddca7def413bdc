"""How many requests one client may make: a token bucket, as a rule with the time passed in.

Kept as one number a client, the moment at which its bucket will be full again (GCRA, as ATM networks police
their senders): each request moves it on by the time that one token takes to drip in.
"""

from __future__ import annotations

from typing import Final

MOST_CLIENTS: Final = 100_000
"""Clients that are remembered; nobody may fill the memory by asking under many names."""


class Rates:
    """The buckets of all clients.

    Args:
        per_s: requests a second, for long.
        burst: requests at once, after a while without any.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._interval_s = 1 / per_s
        self._tolerance_s = burst / per_s
        self._full_at: dict[str, float] = {}

    def take(self, client: str, now: float) -> float:
        """A request comes in at `now`, in seconds; returns 0, or after how many seconds it may come again."""
        full_at = max(self._full_at.get(client, now), now) + self._interval_s
        wait_s = full_at - now - self._tolerance_s
        if wait_s > 0:
            return wait_s
        if len(self._full_at) >= MOST_CLIENTS:
            self._forget(now)
        self._full_at[client] = full_at
        return 0.0

    def _forget(self, now: float) -> None:
        """Whoever has a full bucket is as one that never came; should that help nobody, all begin anew."""
        self._full_at = {client: at for client, at in self._full_at.items() if at > now}
        if len(self._full_at) >= MOST_CLIENTS:
            self._full_at = {}
