"""How a figure is measured and told: medians with their spread, against a goal."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True)
class ResultLine:
    """One line of the report; lower is better. `spread` is half the distance of the quartiles.

    Without a `goal` it is told for comparison only; `measured` is None if that could not be done. `note` is
    what a reader should know beside the figure, `reason` why the goal is missed: told only where it is.
    """

    what: str
    goal: float | None
    measured: float | None
    spread: float
    unit: str
    note: str = ""
    reason: str = ""

    @property
    def good(self) -> bool:
        """Whether the goal is met."""
        return self.measured is not None and (self.goal is None or self.measured <= self.goal)

    @property
    def verdict(self) -> str:
        """Whether the goal is met, in a word or two."""
        if self.measured is None:
            return "not measured"
        return "-" if self.goal is None else "met" if self.good else "MISSED"

    @property
    def why(self) -> str:
        """The reason, if one is needed."""
        return "" if self.good else self.reason

    @property
    def wanted(self) -> str:
        """The goal as text."""
        return "-" if self.goal is None else f"≤ {self.goal:.3g}"

    @property
    def found(self) -> str:
        """The figure as text, with its spread."""
        if self.measured is None:
            return "-"
        return f"{self.measured:.3g}" + (f" ± {self.spread:.1g}" if self.spread else "")

    def __str__(self) -> str:
        note = f"  ({self.note})" if self.note else ""
        why = f"\n    why: {self.why}" if self.why else ""
        told = f"goal {self.wanted:<8} {self.found:<16} {self.unit:<9} {self.verdict}"
        return f"{self.what:<76} {told}{note}{why}"


@dataclass(frozen=True)
class Curve:
    """What a plot shows: how a cost grows with a size, a series each of those that are compared.

    `is_share` says that `x` is a share in percent, and no size: how many have not had more than `y`.
    """

    what: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    is_share: bool = False


def shares(values: Sequence[float]) -> list[tuple[float, float]]:
    """Of each value, from the smallest on, how many percent of all are not larger."""
    ordered = sorted(values)
    return [(100 * number / len(ordered), value) for number, value in enumerate(ordered, 1)]


def attempted(what: str, measure: Callable[[], Iterable[ResultLine | Curve]]) -> Iterator[ResultLine | Curve]:
    """What `measure` finds; where it fails, as without one that is to be measured against, why."""
    try:
        yield from measure()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other benchmarks are to go on
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        yield ResultLine(what, None, None, 0, "", reason=reason)


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


def growth(
    what: str, goal: float, sizes: Sequence[float], costs: Sequence[float], reason: str = ""
) -> ResultLine:
    """How cost grows with size: the slope of the best line through the logarithms, 1 is proportional."""
    logs = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return ResultLine(what, goal, statistics.linear_regression(*logs).slope, 0.0, "exponent", reason=reason)
