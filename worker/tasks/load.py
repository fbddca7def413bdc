"""How much work a task is, by what its batches take (`assignors.sizes`). Rules without I/O."""

from __future__ import annotations

from math import exp
from typing import Final

MEMORY_S: Final = 60.0
"""What happened that long ago counts a third of what happens now: a load is no matter of one slow batch."""
WARM_UP_S: Final = 30.0
"""Nothing is said of a task sooner: the first batches of a query are none like the later ones."""


class Load:
    """The share of the time that a query's batches take, times the capacity of the worker they run on."""

    def __init__(self, capacity: float, now: float) -> None:
        self._capacity = capacity
        self._since = self._looked_at = now
        self._batch_id: int | None = None
        self._share = 0.0

    def observe(self, batch_id: int | None, batch_ms: float, now: float) -> None:
        """The last batch a query has finished and what it took; those between two looks count as it does.

        Args:
            batch_id: of the last finished batch, None before the first.
            batch_ms: how long it took, in milliseconds.
            now: the time of the look, in seconds.
        """
        passed = now - self._looked_at
        if passed <= 0:
            return
        batches = 0 if batch_id is None or self._batch_id is None else max(batch_id - self._batch_id, 0)
        busy = batches * batch_ms / 1000 / passed
        kept = exp(-passed / MEMORY_S)
        self._share = kept * self._share + (1 - kept) * busy
        self._looked_at = now
        self._batch_id = batch_id

    def measured(self) -> float | None:
        """The load to two places, lest it be news every second; None while too little was seen of it."""
        watched = self._looked_at - self._since
        if watched < WARM_UP_S:
            return None
        share = min(self._share / (1 - exp(-watched / MEMORY_S)), 1.0)
        return round(self._capacity * share, 2)
