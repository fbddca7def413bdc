"""Which of several has how much of something: a bar each, the longest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.svg import box, chart, hint, text
from manager.console.formatting import counted, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from markupsafe import Markup

WIDTH: Final = 640.0
LINE: Final = 24.0
BAR: Final = 14.0
LEFT: Final = 212.0
LONGEST: Final = 330.0
GAP: Final = 8.0
THINNEST: Final = 1.4
LONGEST_NAME: Final = 24
"""Characters that there is room for."""
SHOWN: Final = 12
"""Bars with a name of their own; a worker may have a thousand tasks."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What has how much."""

    name: str
    value: float


def ranked(key: str, title: str, bars: Iterable[Bar], form: Callable[[float], str]) -> Markup | None:
    """The largest by name, and all others together as the last; None if nothing has anything.

    Args:
        key: unique on the page.
        title: in words.
        bars: in any order.
        form: a value as people read it.
    """
    shown = _together(sorted((bar for bar in bars if bar.value > 0), key=lambda bar: (-bar.value, bar.name)))
    if not shown:
        return None
    return in_order(key, title, shown, form)


def in_order(key: str, title: str, bars: Sequence[Bar], form: Callable[[float], str]) -> Markup:
    """All of them, in the order they have; there is at least one."""
    longest = max(bar.value for bar in bars)
    parts = [part for line, bar in enumerate(bars) for part in _line(line, bar, longest, form)]
    words = "; ".join(f"{bar.name}: {form(bar.value)}" for bar in bars)
    return chart(title, f"{words}.", parts, width=WIDTH, height=LINE * len(bars), key=key)


def _together(bars: Sequence[Bar]) -> list[Bar]:
    """Those that are not shown are one."""
    if len(bars) <= SHOWN:
        return [*bars]
    others = bars[SHOWN - 1 :]
    return [*bars[: SHOWN - 1], Bar(counted(len(others), "other"), sum(bar.value for bar in others))]


def _line(line: int, bar: Bar, longest: float, form: Callable[[float], str]) -> Iterator[Markup]:
    middle = line * LINE + LINE / 2
    length = max(bar.value / longest * LONGEST, THINNEST) if longest > 0 else THINNEST
    words = f"{bar.name}: {form(bar.value)}"
    yield text(LEFT - GAP, middle + 4, shortened(bar.name, LONGEST_NAME), text_anchor="end", class_="label")
    yield box(LEFT, middle - BAR / 2, length, BAR, hint(words), class_="column")
    yield text(LEFT + length + GAP, middle + 4, form(bar.value), class_="tick")
