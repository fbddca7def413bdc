"""What may be counted from one look at something to the next. A rule without I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

LONGEST_LOOK_S: Final = 15.0
"""What counts between two looks, at most: while a worker was frozen, it may be that its query was, too."""


class Passed(NamedTuple):
    """The time since the last look, in seconds: what `counts`, and what is beyond that, `unseen`."""

    counts: float
    unseen: float


class Looks:
    """Those of one looker."""

    def __init__(self) -> None:
        self._last: float | None = None

    def look(self, now: float) -> Passed:
        """One more, at `now`, in seconds; nothing has passed at the first one."""
        passed = 0.0 if self._last is None else now - self._last
        self._last = now
        counts = min(passed, LONGEST_LOOK_S)
        return Passed(counts, passed - counts)
