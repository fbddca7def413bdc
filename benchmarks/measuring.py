"""How a figure is measured and told: medians with their spread, against a goal."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Line:
    """One line of the report; lower is better. `spread` is half the distance of the quartiles."""

    what: str
    goal: float
    measured: float
    spread: float
    unit: str

    @property
    def good(self) -> bool:
        """Whether the goal is met."""
        return self.measured <= self.goal

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "good": self.good}

    def __str__(self) -> str:
        verdict = "met" if self.good else "MISSED"
        return (
            f"{self.what:<60} goal {self.goal:g} {self.unit:<8} "
            f"measured {self.measured:.3g} ± {self.spread:.1g}  {verdict}"
        )


def interleaved(runs: int, *actions: Callable[[], object]) -> list[list[float]]:
    """The seconds each action took, `runs` times in turn (A B A B), so that a busy moment hits all alike."""
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(runs):
        for seconds, action in zip(taken, actions, strict=True):
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
    return taken


def summary(values: Sequence[float]) -> tuple[float, float]:
    """Median and half the distance of the quartiles."""
    low, _, high = statistics.quantiles(values, n=4)
    return statistics.median(values), (high - low) / 2


def growth(what: str, goal: float, sizes: Sequence[float], costs: Sequence[float]) -> Line:
    """How cost grows with size: the slope of the best line through the logarithms, 1 is proportional."""
    logs = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return Line(what, goal, statistics.linear_regression(*logs).slope, 0.0, "exponent")
