"""Deadlines by key. Moving one later costs a dictionary write; nothing is allocated for a heartbeat."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")


class Timers(Generic[K]):
    """A set of keyed deadlines in milliseconds of a clock that only the caller reads.

    The heap may hold an entry that is earlier than its key's deadline (the deadline moved) or whose key is
    gone; both are found out when the entry comes up. So `next_deadline` may be early but is never late.
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

    def cancel(self, key: K) -> None:
        """Disarm `key`; unknown keys are fine."""
        self._deadlines.pop(key, None)

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
                return key
            self._push(key, deadline)
        return None

    def _push(self, key: K, deadline: int) -> None:
        self._queued[key] = deadline
        heappush(self._heap, (deadline, next(self._order), key))
