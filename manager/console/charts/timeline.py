"""Rebalances and what they moved, over time: a column each, and below them how many tasks each worker had."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final

from manager.console.charts.scale import Window
from manager.console.charts.svg import box, chart, element, hint, line, text
from manager.console.formatting import ago, counted, duration, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from manager.console.charts.lanes import Lane
    from protocol.messages.groups import Rebalance

WIDTH: Final = 980.0
LEFT: Final = 190.0
RIGHT: Final = 930.0
TOP: Final = 12.0
MOVED_HEIGHT: Final = 52.0
LANE_HEIGHT: Final = 30.0
LANE_GAP: Final = 6.0
AXIS_HEIGHT: Final = 30.0
MOST_LANES: Final = 24
THINNEST: Final = 4.0
LABEL_WIDTH: Final = 18.0
LEAST: Final = 5.0
"""Height of a rebalance that moved nothing: it is to be seen all the same."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is drawn. `workers` has the name and the colour of each, `since_ms` is as far back as is known."""

    rebalances: Sequence[Rebalance]
    lanes: Sequence[Lane]
    workers: dict[str, tuple[str, int]]
    since_ms: int | None
    begin_ms: float
    now_ms: float


def timeline(drawn: Timeline) -> Markup:
    """The picture, as high as it has lanes; beyond `MOST_LANES` the rest is counted in one line."""
    window = Window(drawn.begin_ms, drawn.now_ms, LEFT, RIGHT)
    shown = drawn.lanes[:MOST_LANES]
    bottom = TOP + MOVED_HEIGHT + LANE_GAP + len(shown) * (LANE_HEIGHT + LANE_GAP)
    seen = [each for each in drawn.rebalances if window.shows(each.started_at_ms + each.duration_ms)]
    parts = [
        *_times(window, bottom),
        *_unseen(window, drawn, bottom),
        *_marks(seen, window, bottom),
        text(LEFT - 12, TOP + MOVED_HEIGHT - 4, "tasks moved", text_anchor="end", class_="label"),
        *_columns(seen, window, drawn.now_ms),
        *(
            []
            if seen
            else [
                text(
                    (LEFT + RIGHT) / 2,
                    TOP + 24,
                    in_words(seen, drawn),
                    text_anchor="middle",
                    class_="nothing",
                )
            ]
        ),
        *_lanes(shown, window, drawn),
        *_more(len(drawn.lanes) - len(shown), bottom),
    ]
    return chart(
        "Rebalances and moves of tasks",
        in_words(seen, drawn),
        parts,
        width=WIDTH,
        height=bottom + AXIS_HEIGHT,
        key="timeline",
    )


def in_words(seen: Sequence[Rebalance], drawn: Timeline) -> str:
    """What the chart shows, for who does not see it; the table below it has the rest."""
    span = duration(drawn.now_ms - drawn.begin_ms)
    if not seen:
        return f"No rebalance in the last {span}."
    moved = sum(each.moved for each in seen)
    return (
        f"{counted(len(seen), 'rebalance')} in the last {span}, which moved {counted(moved, 'task')}; "
        f"the latest ended {ago(seen[0].started_at_ms + seen[0].duration_ms, drawn.now_ms)}."
    )


def _times(window: Window, bottom: float) -> Iterator[Markup]:
    for x, name in window.ticks(8):
        yield line(x, TOP, x, bottom, class_="rule")
        yield text(x, bottom + 18, name, text_anchor="middle", class_="tick now" if name == "now" else "tick")


def _marks(seen: Sequence[Rebalance], window: Window, bottom: float) -> Iterator[Markup]:
    for each in seen:
        x = window.x(each.started_at_ms + each.duration_ms)
        yield line(x, TOP + MOVED_HEIGHT, x, bottom, class_="mark")


def _columns(seen: Sequence[Rebalance], window: Window, now_ms: float) -> Iterator[Markup]:
    """The newest first; a label that would cover the one before is left to the pointer."""
    most = max((each.moved for each in seen), default=0)
    free_to = WIDTH
    for each in seen:
        begin, end = window.x(each.started_at_ms), window.x(each.started_at_ms + each.duration_ms)
        height = LEAST + (sqrt(each.moved / most) * (MOVED_HEIGHT - LEAST - 12) if each.moved else 0)
        top = TOP + MOVED_HEIGHT - height
        told = f"generation {each.generation_id}, {ago(each.started_at_ms, now_ms)}: {each.reason}"
        words = f"{told} ({counted(each.moved, 'task')} moved in {duration(each.duration_ms)})"
        width = max(end - begin, THINNEST)
        yield box(end - width, top, width, height, hint(words), rx=1.5, class_="rebalance")
        if each.moved and end - width / 2 < free_to:
            yield text(end - width / 2, top - 3, f"{each.moved}", text_anchor="middle", class_="moved")
            free_to = end - width / 2 - LABEL_WIDTH


def _lanes(shown: Sequence[Lane], window: Window, drawn: Timeline) -> Iterator[Markup]:
    most = max((lane.most for lane in shown), default=0) or 1
    for number, lane in enumerate(shown):
        top = TOP + MOVED_HEIGHT + LANE_GAP + number * (LANE_HEIGHT + LANE_GAP)
        floor = top + LANE_HEIGHT
        name, colour = drawn.workers.get(lane.worker, (lane.worker, "gone"))
        words = f"{name}: {counted(lane.now, 'task')} now"
        yield element(
            "g",
            line(LEFT, floor, RIGHT, floor, class_="axis"),
            element("path", hint(words), d=_area(lane, window, floor, most)),
            text(LEFT - 12, floor - 10, shortened(name, 24), text_anchor="end", class_="label"),
            text(RIGHT + 8, floor - 10, f"{lane.now}", class_="tick"),
            class_=f"worker m{colour}",
        )


def _area(lane: Lane, window: Window, floor: float, most: int) -> str:
    """From now back to the beginning, in steps."""
    path, right = [f"M{window.right:.1f} {floor:.1f}"], window.right
    for since_ms, count in lane.steps:
        left = window.x(since_ms)
        path.append(f"V{floor - count / most * LANE_HEIGHT:.1f}H{left:.1f}")
        right = left
    return "".join(path) + f"V{floor:.1f}H{right:.1f}Z"


def _unseen(window: Window, drawn: Timeline, bottom: float) -> Iterator[Markup]:
    if drawn.since_ms is not None and drawn.since_ms > window.begin_ms:
        words = "who had what is not remembered from before this manager took the group over"
        top = TOP + MOVED_HEIGHT + LANE_GAP
        end = window.x(drawn.since_ms)
        yield box(window.left, top, end - window.left, bottom - top, hint(words), class_="unseen")


def _more(count: int, bottom: float) -> Iterator[Markup]:
    if count > 0:
        yield text(12, bottom + 18, f"and {counted(count, 'more worker')}", class_="tick")
