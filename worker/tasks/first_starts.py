"""Which tasks of an assignment are still to be started for the first time (protocol §5, Pace)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

PATIENCE_S: Final = 30.0
"""How long a task that was moved here may take to start before others are moved as well."""


class FirstStarts:
    """Waits for each task once, and not for long from when it was assigned.

    A task that has started, or was waited for in vain, is not waited for again while it stays assigned.

    Args:
        is_started: says whether the start of a task takes no more time.
        now: the worker's clock, in seconds.
        patience_s: how long a task is waited for, in seconds.
    """

    def __init__(
        self, is_started: Callable[[str], bool], now: Callable[[], float], patience_s: float = PATIENCE_S
    ) -> None:
        self._is_started = is_started
        self._now = now
        self._patience_s = patience_s
        self._waited_until: dict[str, float] = {}

    def assign(self, tasks: AbstractSet[str]) -> None:
        """A new assignment: what is new in it is waited for, what is not in it any more is not."""
        until = self._now() + self._patience_s
        self._waited_until = {task: self._waited_until.get(task, until) for task in tasks}

    def under_way(self) -> frozenset[str]:
        """The tasks that are waited for."""
        now = self._now()
        awaited = {task for task, until in self._waited_until.items() if until > now}
        started = set(filter(self._is_started, awaited))
        self._waited_until |= dict.fromkeys(started, now)
        return frozenset(awaited - started)
