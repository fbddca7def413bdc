from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from manager.console.charts.bars import divided
from manager.console.charts.lanes import Lane, lanes
from manager.console.charts.scale import Window, round_steps
from manager.console.charts.series import HOUR_MS, Column, Subject, series
from manager.console.charts.states import state_machine
from manager.console.charts.svg import element
from manager.console.charts.timeline import MOST_LANES, Timeline, timeline
from manager.core.group_states import TRANSITIONS
from protocol.messages.groups import Rebalance
from protocol.messages.history import Move
from protocol.states import GroupState

NOW = 1_772_377_445_000
ROWS = Subject("rows", "Rows per second", 10_000, unit="rows/s")


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)  # our own markup


def classes(root: ET.Element) -> list[str]:
    return [each.get("class", "") for each in root.iter()]


def rebalance(generation: int, ago_ms: int, moved: int = 0, reason: str = "a worker joins") -> Rebalance:
    return Rebalance(generation, reason, NOW - ago_ms, 200, 2, moved)


def move(ago_ms: int, task: str, left: str | None, joined: str | None) -> Move:
    return Move(at_ms=NOW - ago_ms, task=task, left=left, joined=joined)


def test_what_is_written_into_a_chart_cannot_break_out_of_it() -> None:
    """Names and reasons are other people's words: they are text, and never markup or an attribute."""
    evil = '"><script>alert(1)</script>'
    drawn = element("text", evil, x=1.25, class_="a", marker_end=evil, none=None)
    assert "<script" not in drawn
    assert parsed(drawn).text == evil
    assert parsed(drawn).attrib == {"x": "1.2", "class": "a", "marker-end": evil}


@pytest.mark.parametrize("present", [state.value for state in GroupState])
def test_the_present_state_is_lit_and_the_ways_out_of_it(present: str) -> None:
    """Every state is a box, every move an arrow, by the core's own table; one box is lit."""
    root = parsed(state_machine(present))
    boxes = [name for name in classes(root) if name.startswith("state ")]
    assert {name.split()[1] for name in boxes} == {state.value for state in GroupState}
    assert [name.split()[1] for name in boxes if name.endswith(" lit")] == [present]
    everywhere = [name for name, froms, _ in TRANSITIONS if set(froms) == set(GroupState)]
    arrows = [(origin, to) for name, froms, to in TRANSITIONS if name not in everywhere for origin in froms]
    drawn = [name for name in classes(root) if re.match(r"move( lit)?$", name)]
    assert len(drawn) == len(arrows)
    assert drawn.count("move lit") == sum(origin.value == present for origin, _ in arrows)


def test_the_state_machine_is_told_in_words() -> None:
    """Who does not see it hears where the group is and where it can go."""
    root = parsed(state_machine("Stable"))
    told = root.find("desc")
    assert told is not None
    assert told.text == "The group is Stable. From here: prepare to PreparingRebalance, bury to Dead."
    assert root.get("aria-describedby") == told.get("id")


@pytest.mark.parametrize(
    ("largest", "steps"),
    [
        (0, [0, 1]),
        (1, [0, 0.25, 0.5, 0.75, 1.0]),
        (7, [0, 2, 4, 6, 8]),
        (100, [0, 25, 50, 75, 100]),
        (1234, [0, 500, 1000, 1500]),
    ],
)
def test_axes_have_round_steps(largest: float, steps: list[float]) -> None:
    """At most four steps, the last one not below what is to be shown."""
    assert round_steps(largest) == pytest.approx(steps)


def test_a_window_lays_time_over_pixels() -> None:
    """What is outside is at its edge; ticks are round times before its end."""
    window = Window(NOW - HOUR_MS, NOW, 100, 700)
    assert (window.x(NOW), window.x(NOW - HOUR_MS / 2), window.x(0), window.x(2 * NOW)) == (
        700,
        400,
        100,
        700,
    )
    assert [name for _, name in window.ticks()] == [
        "now",
        *(f"\N{MINUS SIGN}{n}" for n in ("10 min", "20 min", "30 min", "40 min", "50 min", "1 h")),
    ]


def test_columns_stand_where_their_time_is() -> None:
    """One column for each interval of the hour, none for what is older; words say highest and last."""
    columns = [Column(NOW - 2 * HOUR_MS, 9e9), Column(NOW - 1_800_000, 40), Column(NOW - 10_000, 20)]
    root = parsed(series(ROWS, columns, NOW, None))
    drawn = [each for each in root.iter() if each.get("class") == "column"]
    assert len(drawn) == 2
    assert float(drawn[0].get("height", 0)) == pytest.approx(2 * float(drawn[1].get("height", 0)), abs=0.2)
    told = root.find("desc")
    assert told is not None
    assert told.text == ("Over the last hour: highest 40 rows/s 30 min ago, last 20 rows/s 10 s ago.")


def test_a_chart_of_nothing_says_so() -> None:
    """An empty chart has its axes, and words; time that nobody looked at is marked."""
    told = parsed(series(ROWS, [], NOW, None)).find("desc")
    assert told is not None
    assert told.text == "Nothing was reported in the last hour."
    assert "unseen" in classes(parsed(series(ROWS, [], NOW, NOW - 60_000)))
    assert "unseen" not in classes(parsed(series(ROWS, [], NOW, NOW - 2 * HOUR_MS)))


def test_lanes_are_the_present_taken_back() -> None:
    """What each worker had follows from what it has now and the moves since; of one moment, the outcome."""
    moves = [
        move(900, "old", None, "a"),
        move(50, "t1", None, "a"),
        move(50, "t2", None, "a"),
        move(20, "t2", "a", None),
        move(10, "t2", None, "b"),
        move(10, "t3", "gone", None),
    ]
    found = lanes({"a": 2, "b": 1, "idle": 0}, moves, NOW - 100)
    assert {lane.worker: lane.steps for lane in found} == {
        "a": ((NOW - 20, 2), (NOW - 50, 3), (NOW - 100, 1)),
        "b": ((NOW - 10, 1), (NOW - 100, 0)),
        "idle": ((NOW - 100, 0),),
        "gone": ((NOW - 10, 0), (NOW - 100, 1)),
    }
    assert [lane.worker for lane in found] == ["a", "b", "idle", "gone"]
    assert (found[0].now, found[0].most) == (2, 3)


def drawn_timeline(*rebalances: Rebalance, workers: int = 1, since_ms: int | None = None) -> ET.Element:
    names = [f"worker-{number}" for number in range(workers)]
    found = [Lane(name, ((NOW - HOUR_MS, 3),)) for name in names]
    known = {name: (name, number) for number, name in enumerate(names)}
    return parsed(timeline(Timeline(rebalances, found, known, since_ms, NOW - HOUR_MS, NOW)))


def test_each_rebalance_is_a_column_with_its_reason() -> None:
    """Higher, the more it moved; one that moved nothing is to be seen, too; older ones are left out."""
    root = drawn_timeline(rebalance(3, 60_000, 4, "<b>"), rebalance(2, 600_000), rebalance(1, 2 * HOUR_MS, 9))
    drawn = [each for each in root.iter() if each.get("class") == "rebalance"]
    heights = [float(each.get("height", 0)) for each in drawn]
    assert len(drawn) == 2
    assert heights[0] > heights[1] > 0
    assert drawn[0][0].text == "generation 3, 1 min ago: <b> (4 tasks moved in 200 ms)"
    told = root.find("desc")
    assert told is not None
    assert told.text == "2 rebalances in the last 1 h, which moved 4 tasks; the latest ended 59 s ago."


def test_a_timeline_of_many_workers_counts_the_rest() -> None:
    """It does not grow for ever; a quiet one says so; what is not remembered is marked."""
    root = drawn_timeline(workers=MOST_LANES + 7, since_ms=NOW - 60_000)
    assert sum(name.startswith("worker m") for name in classes(root)) == MOST_LANES
    words = "".join(root.itertext())
    assert "and 7 more workers" in words
    assert "No rebalance in the last 1 h." in words
    assert "unseen" in classes(root)


def test_a_bar_shows_even_one_of_a_thousand() -> None:
    """The parts fill the whole, each at least as wide as can be seen; what is not there is left out."""
    root = parsed(divided({"FAILED": 1, "RUNNING": 999, "PAUSED": 0}))
    widths = [float(each.get("width", 0)) for each in root]
    assert [each.get("class") for each in root] == ["s-FAILED", "s-RUNNING"]
    assert widths[0] >= 3
    assert sum(widths) == pytest.approx(119, abs=0.2)
    assert [each.get("class") for each in parsed(divided({}))] == ["nothing"]


def test_a_bar_of_several_is_as_long_as_its_share() -> None:
    """Of the longest; one with hardly anything is to be seen all the same."""
    half, least = (parsed(divided({"RUNNING": count}, of=100)) for count in (50, 1))
    assert [each.get("width") for each in (*half, *least)] == ["60", "3"]
