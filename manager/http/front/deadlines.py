"""Time limits of many connections, all of the same length, so that one timer is enough for all of them."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Calls `overdue` with whatever was started `seconds` ago and not stopped since.

    Every request starts and stops one. What was started first is due first: a dictionary is queue enough.
    """

    __slots__ = ("_due", "_loop", "_overdue", "_seconds", "_timer")

    def __init__(self, seconds: float, overdue: Callable[[T], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._overdue = overdue
        self._due: dict[T, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, one: T) -> bool:
        return one in self._due

    def start(self, one: T) -> None:
        """Count from now, whether it was counted before or not."""
        self.stop(one)
        self._due[one] = self._loop.time() + self._seconds
        self._arm()

    def stop(self, one: T) -> None:
        """There is nothing to wait for any more."""
        self._due.pop(one, None)

    def _arm(self) -> None:
        if self._timer is None and self._due:
            self._timer = self._loop.call_at(next(iter(self._due.values())), self._look)

    def _look(self) -> None:
        """All that are due at once, each in a call of its own, so that one that raises keeps no other up."""
        self._timer = None
        now = self._loop.time()
        late = [one for one, _ in takewhile(lambda item: item[1] <= now, self._due.items())]
        for one in late:
            self.stop(one)
            self._loop.call_soon(self._overdue, one)
        self._arm()
