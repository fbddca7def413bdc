"""Whether a series of figures grows: the slope of a straight line through it, and how sure that is."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 3
"""Points through which a line says anything; two always lie on one."""
SURE = 2.0
"""Standard errors within which a slope may as well be none."""


class Trend(NamedTuple):
    """A slope and its standard error, both an hour, beside the mean of the figures."""

    slope: float
    error: float
    mean: float

    @property
    def sure_growth(self) -> float:
        """An hour, as far as it cannot be chance; 0 where it may be."""
        return max(self.slope - SURE * self.error, 0.0)


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Of figures by the time in seconds, by least squares.

    Neighbours in time resemble each other, so that there are fewer figures than there are points: the error
    is made wider by the correlation of each residual with the next one (an autoregression of order 1).

    Raises:
        ValueError: there are fewer than three, or all of one moment.
    """
    if len(points) < FEWEST:
        raise ValueError(f"{len(points)} points are too few for a trend")
    pairs = [(at / 3600, figure) for at, figure in points]
    mean_hour, mean = (sum(each) / len(pairs) for each in zip(*pairs, strict=True))
    spread = sum((hour - mean_hour) ** 2 for hour, _ in pairs)
    if not spread:
        raise ValueError("all points are of one moment")
    slope = sum((hour - mean_hour) * (figure - mean) for hour, figure in pairs) / spread
    left = [figure - mean - slope * (hour - mean_hour) for hour, figure in pairs]
    squares = sum(each * each for each in left)
    error = math.sqrt(squares / (len(points) - 2) / spread)
    return Trend(slope, error * _widening(left, squares), mean)


def _widening(left: Sequence[float], squares: float) -> float:
    if not squares:
        return 1.0
    alike = sum(a * b for a, b in pairwise(left)) / squares
    alike = min(max(alike, 0.0), 0.99)
    return math.sqrt((1 + alike) / (1 - alike))
