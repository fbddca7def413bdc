"""Whether a query has work and gets no batch done: a rule without I/O."""

from __future__ import annotations

from typing import Final

from worker.query_engine import Stall

AGAIN_S: Final = 60.0
"""From one question where a silent query is to the next, or its limit if that is less; the pauses grow."""
SHARE: Final = 0.25
"""Of the silence so far, by which it has grown before that is asked again."""
LONGEST_LOOK_S: Final = 15.0
"""What counts between two looks, at most: while a worker was frozen, it may be that its query was, too."""


class StallWatch:
    """Looks at one query every few seconds; `stall` is what is known of its silence, None if there is none.

    Args:
        limit_s: how long it may be silent, in seconds.
        interval_s: of its trigger, in seconds; with rows left to read it rests that long in good order.
    """

    def __init__(self, limit_s: float, interval_s: float = 0.0) -> None:
        self.stall: Stall | None = None
        self._limit_s = self._due_s = limit_s
        self._interval_s = interval_s
        self._silent_s = 0.0
        self._looked_at: float | None = None

    def heard(self) -> None:
        """A batch is done, or Spark has looked and there was nothing to do."""
        self.stall = None
        self._silent_s = 0.0
        self._due_s = self._limit_s

    def look(self, *, is_busy: bool, has_input: bool, now: float) -> bool:
        """Count the time since the last look.

        Args:
            is_busy: whether it does a batch, or looks whether there is something to do.
            has_input: whether there was more to read when the last batch was planned.
            now: the time, in seconds.

        Returns:
            Whether it is to be asked where it is: the answer is for `found`.
        """
        passed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        if not (is_busy or has_input):
            self.heard()
            return False
        self._silent_s += min(passed, LONGEST_LOOK_S)
        silent_s = self._silent_s - (0.0 if is_busy else self._interval_s)
        if silent_s <= self._due_s:
            return False
        self._due_s = silent_s + max(min(AGAIN_S, self._limit_s), SHARE * silent_s)
        return True

    def found(self, where: str | None) -> None:
        """It is there; None if nobody can tell."""
        self.stall = Stall(self._silent_s, where)
