"""SVG elements as markup. Attributes only, never `style`: the content policy forbids that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    Value = str | float | None


def element(name: str, *children: str | Markup, **attributes: Value) -> Markup:
    """One element; `stroke_width=` becomes `stroke-width`, `class_=` `class`, and None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup().join(children)
    return Markup(f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>")  # noqa: S704


def chart(
    title: str, description: str, children: Iterable[Markup], *, width: float, height: float, key: str
) -> Markup:
    """A whole picture, with words for who does not see it; `key` is unique on the page."""
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        *children,
        class_=f"chart {key}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
        viewBox=f"0 0 {_text(width)} {_text(height)}",
    )


def text(x: float, y: float, words: str, **attributes: Value) -> Markup:
    """Words at a place."""
    return element("text", words, x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Value) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def box(x: float, y: float, width: float, height: float, *children: Markup, **attributes: Value) -> Markup:
    """A rectangle; a `title` among its children is shown where the pointer rests."""
    return element("rect", *children, x=x, y=y, width=width, height=height, **attributes)


def hint(words: str) -> Markup:
    """What is shown where the pointer rests on an element."""
    return element("title", words)


def _text(value: Value) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
