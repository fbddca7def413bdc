"""One figure of a task over the last hour: columns for what adds up, points for what does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.scale import Window, round_steps
from manager.console.charts.svg import box, chart, hint, line, text
from manager.console.formatting import duration, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markupsafe import Markup

WIDTH: Final = 640.0
HEIGHT: Final = 200.0
LEFT: Final = 76.0
RIGHT: Final = 628.0
TOP: Final = 14.0
BOTTOM: Final = 168.0
HOUR_MS: Final = 3_600_000
THINNEST: Final = 1.4
NOTHING: Final = "Nothing was reported in the last hour."


@dataclass(frozen=True, slots=True)
class Column:
    """What a figure was in the interval from `at_ms` on."""

    at_ms: int
    value: float


@dataclass(frozen=True, slots=True)
class Subject:
    """What a chart is about.

    Attributes:
        key: unique on the page.
        title: in words.
        interval_ms: how wide a column is.
        unit: of its values, after the figure; `form` may have said it already.
        form: a value as people read it.
    """

    key: str
    title: str
    interval_ms: int
    unit: str = ""
    form: Callable[[float], str] = figure

    def in_units(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.form(value)} {self.unit}".rstrip()


def series(subject: Subject, columns: Sequence[Column], now_ms: int, since_ms: int | None) -> Markup:
    """The last hour as columns.

    Args:
        subject: what it is about.
        columns: those there are; where there is none, nothing was told.
        now_ms: the right edge.
        since_ms: before this, nobody looked; None if somebody always did.
    """
    window = Window(now_ms - HOUR_MS, now_ms, LEFT, RIGHT)
    seen = [column for column in columns if window.shows(column.at_ms)]
    steps = round_steps(max((column.value for column in seen), default=0.0))
    parts = [
        *(_rules(steps, subject) if seen else ()),
        *_times(window),
        *_unseen(window, since_ms),
        *(_column(column, subject, window, steps[-1]) for column in seen),
        *([] if seen else [text((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2, NOTHING, text_anchor="middle")]),
    ]
    return chart(
        subject.title, in_words(subject, seen, now_ms), parts, width=WIDTH, height=HEIGHT, key=subject.key
    )


def in_words(subject: Subject, seen: Sequence[Column], now_ms: int) -> str:
    """What the chart shows, for who does not see it."""
    if not seen:
        return NOTHING
    peak = max(seen, key=lambda column: column.value)
    last = seen[-1]
    return (
        f"Over the last hour: highest {subject.in_units(peak.value)} "
        f"{duration(max(now_ms - peak.at_ms, 0))} ago, last {subject.in_units(last.value)} "
        f"{duration(max(now_ms - last.at_ms, 0))} ago."
    )


def _y(value: float, top_value: float) -> float:
    return BOTTOM - value / top_value * (BOTTOM - TOP)


def _rules(steps: Sequence[float], subject: Subject) -> Iterator[Markup]:
    for value in steps:
        y = _y(value, steps[-1])
        yield line(LEFT, y, RIGHT, y, class_="rule")
        yield text(LEFT - 8, y + 4, subject.form(value), text_anchor="end", class_="tick")


def _times(window: Window) -> Iterator[Markup]:
    for x, name in window.ticks():
        yield line(x, BOTTOM, x, BOTTOM + 4, class_="axis")
        anchor = "end" if name == "now" else "start" if x == window.left else "middle"
        yield text(x, BOTTOM + 19, name, text_anchor=anchor, class_="tick")
    yield line(window.left, BOTTOM, window.right, BOTTOM, class_="axis")


def _unseen(window: Window, since_ms: int | None) -> Iterator[Markup]:
    """The time before this manager looked is no time in which nothing happened."""
    if since_ms is not None and since_ms > window.begin_ms:
        words = "not remembered: from before this manager took the group over"
        yield box(LEFT, TOP, window.x(since_ms) - LEFT, BOTTOM - TOP, hint(words), class_="unseen")


def _column(column: Column, subject: Subject, window: Window, top_value: float) -> Markup:
    x, end = window.x(column.at_ms), window.x(column.at_ms + subject.interval_ms)
    y = _y(column.value, top_value)
    before = duration(window.end_ms - column.at_ms)
    return box(
        x,
        y,
        max(end - x, THINNEST),
        BOTTOM - y,
        hint(f"{subject.in_units(column.value)}, {before} ago"),
        class_="column",
    )
