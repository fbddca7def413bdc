"""The state machine of a group, drawn from the core's own table, with the present state lit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.console.charts.svg import box, chart, element, text
from manager.core.group_states import TRANSITIONS
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    Transition = tuple[str, tuple[GroupState, ...], GroupState]

WIDTH: Final = 980.0
HEIGHT: Final = 152.0
BOX_WIDTH: Final = 148.0
BOX_HEIGHT: Final = 40.0
MIDDLE: Final = 78.0
APART: Final = 7.0
"""From the middle of the boxes to each of the two arrows that run to and fro."""


def state_machine(present: str, transitions: tuple[Transition, ...] = TRANSITIONS) -> Markup:
    """Boxes in the order of `GroupState`, an arrow for each transition; one from anywhere is drawn once.

    Args:
        present: the state that is lit, by its name.
        transitions: the table.
    """
    states = list(GroupState)
    gap = (WIDTH - BOX_WIDTH) / (len(states) - 1)
    places = {state: number * gap for number, state in enumerate(states)}
    return chart(
        "States of the group",
        _in_words(present, transitions),
        [
            _arrowhead("head"),
            _arrowhead("head-lit"),
            *_arrows(present, places, transitions),
            *_boxes(present, places),
        ],
        width=WIDTH,
        height=HEIGHT,
        key="states",
    )


def _in_words(present: str, transitions: tuple[Transition, ...]) -> str:
    ways = [f"{name} to {to.value}" for name, froms, to in transitions if GroupState(present) in froms]
    return f"The group is {present}. From here: {', '.join(ways)}."


def _boxes(present: str, places: dict[GroupState, float]) -> Iterator[Markup]:
    for state, x in places.items():
        yield element(
            "g",
            box(x, MIDDLE - BOX_HEIGHT / 2, BOX_WIDTH, BOX_HEIGHT, rx=9.0),
            text(x + BOX_WIDTH / 2, MIDDLE + 4.5, state.value, text_anchor="middle"),
            class_=f"state {state.value}" + (" lit" if state.value == present else ""),
        )


def _arrows(
    present: str, places: dict[GroupState, float], transitions: tuple[Transition, ...]
) -> Iterator[Markup]:
    for name, froms, to in transitions:
        if set(froms) == set(GroupState):
            yield _from_anywhere(name, places[to])
            continue
        for origin in froms:
            yield _arrow(name, places[origin], places[to], origin.value == present, places)


def _arrow(name: str, origin: float, target: float, lit: bool, places: dict[GroupState, float]) -> Markup:  # noqa: FBT001
    step = sorted(places.values())[1]
    if abs(target - origin) > step + 1:
        return _drawn(*_arc(origin, target), name, lit=lit)
    return _drawn(*_straight(origin, target), name, lit=lit)


def _straight(origin: float, target: float) -> tuple[str, float, float]:
    """To the right above the middle, to the left below it."""
    forth = target > origin
    begin, end = (origin + BOX_WIDTH, target) if forth else (origin, target + BOX_WIDTH)
    y = MIDDLE - APART if forth else MIDDLE + APART
    return (
        f"M{begin:.1f} {y:.1f}H{end + (-7 if forth else 7):.1f}",
        (begin + end) / 2,
        y + (-6 if forth else 15),
    )


def _arc(origin: float, target: float) -> tuple[str, float, float]:
    """Around the boxes between: below them to the left, above them to the right."""
    side = 1 if target < origin else -1
    edge = MIDDLE + side * BOX_HEIGHT / 2
    begin, end, far = origin + BOX_WIDTH / 2, target + BOX_WIDTH / 2, edge + side * 50
    path = (
        f"M{begin:.1f} {edge:.1f}C{begin:.1f} {far:.1f} {end:.1f} {far:.1f} {end:.1f} {edge + side * 7:.1f}"
    )
    return path, (begin + end) / 2, edge + side * 50


def _from_anywhere(name: str, target: float) -> Markup:
    x = target + BOX_WIDTH / 2
    top = MIDDLE - BOX_HEIGHT / 2
    return element(
        "g",
        element("path", d=f"M{x:.1f} {top - 40:.1f}V{top - 7:.1f}", marker_end="url(#head)"),
        text(x, top - 46, f"{name}, from any state", text_anchor="middle"),
        class_="move anywhere",
    )


def _drawn(path: str, x: float, y: float, name: str, *, lit: bool) -> Markup:
    return element(
        "g",
        element("path", d=path, marker_end=f"url(#{'head-lit' if lit else 'head'})"),
        text(x, y, name.replace("_", " "), text_anchor="middle"),
        class_="move lit" if lit else "move",
    )


def _arrowhead(key: str) -> Markup:
    return element(
        "marker",
        element("path", d="M0 0L7 3.5L0 7z"),
        id=key,
        class_=key,
        markerWidth=7.0,
        markerHeight=7.0,
        refX=1.0,
        refY=3.5,
        orient="auto",
        markerUnits="userSpaceOnUse",
    )
