"""Axes: round steps for values, and windows of time that end now."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from manager.console.formatting import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUS = "\N{MINUS SIGN}"
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
TIME_STEPS_S = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800)


def round_steps(largest: float, at_most: int = 4) -> list[float]:
    """0 and the round values up to the first that is not below `largest`, `at_most` steps of them."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / at_most
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in ROUND if factor * power * at_most >= largest * (1 - 1e-9))
    return [step * number for number in range(ceil(largest / step - 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `begin_ms` to `end_ms` laid over pixels; both are milliseconds since 1970."""

    begin_ms: float
    end_ms: float
    left: float
    right: float

    @property
    def is_empty(self) -> bool:
        """Whether there is no time in it."""
        return self.end_ms <= self.begin_ms

    def x(self, at_ms: float) -> float:
        """Where a moment is; what is outside is at the edge."""
        inside = min(max(at_ms, self.begin_ms), self.end_ms)
        return self.left + (inside - self.begin_ms) / (self.end_ms - self.begin_ms) * (self.right - self.left)

    def shows(self, at_ms: float) -> bool:
        """Whether a moment is in it."""
        return self.begin_ms <= at_ms <= self.end_ms

    def ticks(self, at_most: int = 6) -> Iterator[tuple[float, str]]:
        """Places and what they are called, as time before the end."""
        span_s = (self.end_ms - self.begin_ms) / 1000
        step = next((step for step in TIME_STEPS_S if span_s / step <= at_most), TIME_STEPS_S[-1])
        yield self.right, "now"
        for number in range(1, int(span_s // step) + 1):
            before_s = number * step
            yield self.x(self.end_ms - before_s * 1000), f"{MINUS}{duration(before_s * 1000)}"
