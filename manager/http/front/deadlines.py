"""Time limits of many connections, all of the same length, so that one timer is enough for all of them."""

from __future__ import annotations

import asyncio
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
        """One at a time, so that an `overdue` that raises keeps no other from its end."""
        self._timer = None
        if not self._due:
            return
        first, due = next(iter(self._due.items()))
        if due > self._loop.time():
            self._arm()
        else:
            self.stop(first)
            self._arm()
            self._overdue(first)
