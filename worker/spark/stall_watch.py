"""Whether a query has work and gets no batch done: a rule without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from worker.looks import Looks
from worker.query_engine import Stall

if TYPE_CHECKING:
    from worker.spark.whereabouts import Whereabouts

AGAIN_S: Final = 60.0
"""From one question where a silent query is to the next, or its limit if that is less; the pauses grow."""
SHARE: Final = 0.25
"""Of the silence so far, by which it has grown before that is asked again."""
LEAST_PAUSE_S: Final = 10.0
"""Between two questions, whatever its limit, and though it does a batch after the other beyond that."""


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
        self._silent_s = self._held_up_s = 0.0
        self._looks = Looks()
        self._asked_at = float("-inf")

    def heard(self) -> None:
        """A batch is done, or Spark has looked and there was nothing to do."""
        self.stall = None
        self._silent_s = self._held_up_s = 0.0
        self._due_s = self._limit_s

    def look(self, *, is_busy: bool, has_input: bool, now: float) -> bool:
        """Count the time since the last look.

        Args:
            is_busy: whether it does a batch, or looks whether there is something to do.
            has_input: whether there was more to read when the last batch was planned.
            now: the time, in seconds.

        Returns:
            Whether it is to be asked where it is: the answer is for `found`, that there is none for
            `unanswered`.
        """
        passed = self._looks.look(now)
        if not (is_busy or has_input):
            self.heard()
            return False
        self._silent_s += passed.counts
        silent_s = self._silent_s - (0.0 if is_busy else self._interval_s)
        if silent_s <= self._due_s or now - self._asked_at < LEAST_PAUSE_S:
            return False
        self._asked_at = now
        self._due_s = silent_s + max(min(AGAIN_S, self._limit_s), SHARE * silent_s)
        return True

    def found(self, where: Whereabouts | None) -> None:
        """It is there; None if nobody can ever tell.

        Where others hold it up, its own silence begins anew: it is asked again when that has lasted too long.
        """
        if where is not None and where.is_held_up:
            self._held_up_s = self._silent_s
        acts_at_s = self._held_up_s + self._limit_s
        if acts_at_s > self._silent_s:
            self._due_s = min(self._due_s, acts_at_s)
        self.stall = Stall(self._silent_s, None if where is None else where.words, self._held_up_s)

    def unanswered(self) -> None:
        """There is no answer so far: an engine that answers nobody holds up all its queries."""
        self.stall = Stall(self._silent_s, None, self._silent_s)
