"""How a whole divides into states, as one bar. The figures beside it say the same in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.console.charts.svg import box, element, hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

WIDTH: Final = 120.0
HEIGHT: Final = 8.0
GAP: Final = 1.0
LEAST: Final = 3.0
"""A single one of a thousand is to be seen all the same."""


def divided(counts: Mapping[str, int], of: int = 0) -> Markup:
    """A bar of `counts`, in their order; empty without any. One of more, `of`, is so much longer."""
    parts = {name: count for name, count in counts.items() if count}
    total = sum(parts.values())
    return element(
        "svg",
        *_parts(parts, WIDTH * total / max(of, total) if total else 0.0),
        class_="divided",
        aria_hidden="true",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        preserveAspectRatio="none",
    )


def _parts(counts: Mapping[str, int], length: float) -> Iterator[Markup]:
    if not counts:
        yield box(0.0, 0.0, WIDTH, HEIGHT, class_="nothing")
        return
    total = sum(counts.values())
    free = max(length - GAP * (len(counts) - 1) - LEAST * len(counts), 0.0)
    x = 0.0
    for name, count in counts.items():
        width = LEAST + free * count / total
        yield box(x, 0.0, width, HEIGHT, hint(f"{count} {name}"), class_=f"s-{name}")
        x += width + GAP
