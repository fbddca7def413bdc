"""What is known of the managers of a herd at one moment, as far as alarms look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

SILENT_AFTER_MS: Final = 20_000
"""A manager tells of itself every five seconds; one that has not for so long does not any more."""
SETTLE_MS: Final = 60_000
"""Who was silent itself, or cut off from the database, knows of no silence of others for so long after it."""


class ManagerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a manager tells of itself, stored as JSON; figures that it cannot have are None.

    Args:
        loop_lag_s: how late its event loop was at most since it told before, in seconds.
        memory_percent: its memory by what there is for it.
        transactions: how many that store something it has tried since it began.
        failed: how many of these failed.
        seconds: how long all of them have taken together.
        last_error: what the database said, or did not, when one failed last.
    """

    loop_lag_s: float | None = None
    memory_percent: float | None = None
    transactions: int = 0
    failed: int = 0
    seconds: float = 0.0
    last_error: str | None = None


class ManagerFacts(NamedTuple):
    """A manager that has not ended in order.

    `silent_ms` is since it told of itself last, by the database's clock.
    """

    id: str
    incarnation: str
    url: str
    silent_ms: int
    figures: ManagerFigures

    @property
    def is_silent(self) -> bool:
        """Whether its figures are of before."""
        return self.silent_ms > SILENT_AFTER_MS


class HerdFacts(NamedTuple):
    """All managers; `knows_silence` unless the one that looks was away itself a moment ago."""

    managers: Sequence[ManagerFacts]
    knows_silence: bool


class Attendance:
    """Since when this manager has told of itself without a gap, by the database's clock in milliseconds.

    After an outage of the database, or of this machine, all others seem to be silent: they have had no
    chance to tell of themselves either.
    """

    def __init__(self) -> None:
        self._since_ms: int | None = None

    def told(self, now_ms: int, gap_ms: int | None) -> bool:
        """It has told of itself, `gap_ms` after the time before (None for the first one).

        Returns:
            Whether it knows who is silent.
        """
        if self._since_ms is None or gap_ms is None or gap_ms > SILENT_AFTER_MS:
            self._since_ms = now_ms
        return now_ms - self._since_ms >= SETTLE_MS
