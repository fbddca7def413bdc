"""Deadlines by key. Moving one later costs a dictionary write; nothing is allocated for a heartbeat."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

FEW: Final = 64
"""Entries of which so many may be dead: looking for them would cost more than they do."""

K = TypeVar("K", bound="Hashable")


class Timers(Generic[K]):
    """A set of keyed deadlines in milliseconds of a clock that only the caller reads.

    The heap may hold an entry that is earlier than its key's deadline (the deadline moved) or whose key is
    gone; both are found out when the entry comes up. So `next_deadline` may be early but is never late. When
    more of them are dead than count they are all cleared away: as many cancellations or moves have paid.
    """

    __slots__ = ("_deadlines", "_heap", "_order", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[K, int] = {}
        self._queued: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._order = count()

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines

    def deadline(self, key: K) -> int | None:
        """When `key` is due, None if it is not armed."""
        return self._deadlines.get(key)

    def set(self, key: K, deadline: int) -> None:
        """Arm `key`, or move it to another deadline."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)
            self._tidy()

    def cancel(self, key: K) -> None:
        """Disarm `key`; unknown keys are fine."""
        if self._deadlines.pop(key, None) is not None:
            self._tidy()

    def next_deadline(self) -> int | None:
        """When to call `pop_due` next; None when nothing is armed."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> K | None:
        """Disarm and return the earliest key that is due; None when none is."""
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heappop(self._heap)
            if self._queued.get(key) != at:
                continue  # a later push for the same key took over
            del self._queued[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline <= now:
                del self._deadlines[key]
                self._tidy()
                return key
            self._push(key, deadline)
        return None

    def _push(self, key: K, deadline: int) -> None:
        self._queued[key] = deadline
        heappush(self._heap, (deadline, next(self._order), key))

    def _tidy(self) -> None:
        """Clear away what does not count; a key may be there twice for the same moment."""
        if len(self._heap) <= 2 * len(self._deadlines) + FEW:
            return
        living: dict[K, tuple[int, int, K]] = {}
        for entry in filter(self._counts, self._heap):
            living[entry[2]] = min(entry, living.get(entry[2], entry))
        self._queued = {key: at for at, _, key in living.values()}
        self._heap = list(living.values())
        heapify(self._heap)

    def _counts(self, entry: tuple[int, int, K]) -> bool:
        at, _, key = entry
        return key in self._deadlines and self._queued[key] == at
