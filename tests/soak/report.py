"""What came of the soak, for people: trends, what is left behind, rows; and whether all of it is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.soak.trend import FEWEST, Trend, trend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.soak.run import Outcome, Series

SETTLING: Final = 0.3
"""Of the time, that caches and checkpoints take to be as full as they get: no trend is told of it."""
GROWTH: Final = 0.05
"""An hour, of the mean, up to which memory counts as flat; the same number of things as `THINGS`."""
THINGS: Final = 2.0
MORE_AT_REST: Final = 10
"""Threads and files that a process may have more without tasks than before: pools that are filled."""
MIB: Final = 2**20
SIZE_INCHES: Final = (9.0, 6.0)
_BYTES: Final = ("memory", "live heap")
_WHOLE_AT_REST: Final = ("queries", "sessions", "python processes")


class Line(NamedTuple):
    """A figure, how it went, and whether that is as it should be."""

    name: str
    trend: Trend
    before: float
    after: float
    is_flat: bool

    def __str__(self) -> str:
        unit = MIB if _is_bytes(self.name) else 1
        slope, error, mean = (each / unit for each in self.trend)
        rest = f"{self.before / unit:10.1f} {self.after / unit:10.1f}"
        return f"{self.name:<28} {mean:10.1f} {slope:+10.2f} ± {error:<7.2f} {rest}  {_verdict(self.is_flat)}"


HEAD: Final = (
    f"{'figure (memory in MiB)':<28} {'mean':>10} {'an hour':>10}   {'':<7}"
    f" {'rest, 1st':>10} {'rest, end':>10}"
)


def lines(outcome: Outcome) -> Iterator[Line]:
    """A line each figure, of what was seen after things had settled."""
    for name, points in outcome.series.items():
        late = [point for point in points if point[0] >= SETTLING * outcome.seconds]
        if len(late) >= FEWEST:
            yield _line(name, trend(late), outcome.before.get(name, 0.0), outcome.after.get(name, 0.0))


def _line(name: str, found: Trend, before: float, after: float) -> Line:
    if _is_bytes(name):
        return Line(name, found, before, after, found.sure_growth <= GROWTH * found.mean)
    more = 0 if name.endswith(_WHOLE_AT_REST) else MORE_AT_REST
    bounded = name.startswith("entries of") or after <= before + more
    return Line(name, found, before, after, found.sure_growth <= _things(name, found) and bounded)


def _things(name: str, found: Trend) -> float:
    return GROWTH * found.mean if name.startswith("entries of") else THINGS


def _is_bytes(name: str) -> bool:
    return name.endswith(_BYTES)


def _verdict(is_right: bool) -> str:  # noqa: FBT001 - it is the question
    return "flat" if is_right else "NOT AS IT SHOULD BE"


def is_right(outcome: Outcome) -> bool:
    """Everything is flat, nothing is left behind, all rows are there once."""
    return (
        all(line.is_flat for line in lines(outcome))
        and not any(map(any, outcome.faults.values()))
        and not any(_left(outcome).values())
    )


def told(outcome: Outcome) -> str:
    """All of it as text."""
    lost, twice = (sum(each) for each in zip(*outcome.faults.values(), strict=True))
    return "\n".join(
        [
            f"{outcome.seconds:.0f} s, {len(outcome.faults)} tasks, {outcome.moves} rebalances",
            f"rows: {outcome.rows:,} to each task",
            f"sinks: lost {lost}, twice {twice}",
            f"left behind: {', '.join(f'{count} {what}' for what, count in _left(outcome).items())}",
            HEAD,
            *map(str, lines(outcome)),
        ]
    )


def _left(outcome: Outcome) -> dict[str, int]:
    return {"processes": outcome.left_processes, **outcome.swept}


def draw(series: Series, path: Path) -> None:
    """Memory above, numbers of things below, by the minute."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    for name, points in series.items():
        at, figures = zip(*points, strict=True)
        minutes = [each / 60 for each in at]
        if _is_bytes(name):
            above.plot(minutes, [each / MIB for each in figures], label=name)
        elif name.endswith(("threads", "files", "queries")):
            below.plot(minutes, figures, label=name)
    above.set(ylabel="MiB", ylim=(0, None))
    below.set(ylabel="number", xlabel="minutes", ylim=(0, None))
    for axes in (above, below):
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
    with mpl.rc_context({"svg.hashsalt": "sparkherd"}):
        figure.savefig(path, metadata={"Date": None})


def pairs(series: Series) -> Sequence[str]:
    """The figures as lines of CSV, for whoever draws them otherwise."""
    return [f"{name},{at:.1f},{figure:.0f}" for name, points in series.items() for at, figure in points]
