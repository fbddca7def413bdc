"""How a figure is measured and told: medians with their spread, against a goal."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Line:
    """One line of the report; lower is better. `spread` is half the distance of the quartiles.

    Without a `goal` it is told for comparison only. `note` is what a reader should know beside the figure.
    """

    what: str
    goal: float | None
    measured: float
    spread: float
    unit: str
    note: str = ""

    @property
    def good(self) -> bool:
        """Whether the goal is met."""
        return self.goal is None or self.measured <= self.goal

    @property
    def verdict(self) -> str:
        """In a word."""
        return "-" if self.goal is None else "met" if self.good else "MISSED"

    @property
    def wanted(self) -> str:
        """The goal as text."""
        return "-" if self.goal is None else f"≤ {self.goal:.3g}"

    @property
    def found(self) -> str:
        """The figure as text, with its spread."""
        return f"{self.measured:.3g}" + (f" ± {self.spread:.1g}" if self.spread else "")

    def __str__(self) -> str:
        note = f"  ({self.note})" if self.note else ""
        return f"{self.what:<76} goal {self.wanted:<8} {self.found:<16} {self.unit:<9} {self.verdict}{note}"


@dataclass(frozen=True)
class Curve:
    """What a plot shows: how a cost grows with a size, a series each of those that are compared."""

    what: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]


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
