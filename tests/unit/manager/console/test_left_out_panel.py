"""What the page of a task says of rows that did not go to its sink."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from definition.left_out import MOST_REASONS
from manager.console.pages.left_out import LeftOutPanel, left_out_panel

TASK: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "delta"}}
SIFTING: dict[str, Any] = {
    "expect": [
        {"name": "late", "where": "delay > 0", "on_violation": "quarantine"},
        {"name": "sane", "where": "delay < 9000", "on_violation": "drop"},
    ]
}


def panel(metrics: dict[str, Any] | None, **parts: Any) -> LeftOutPanel | None:
    return left_out_panel(metrics, msgspec.Raw(json.dumps({**TASK, **parts}).encode()))


def lines(found: LeftOutPanel | None) -> list[tuple[str, str, str]]:
    assert found is not None
    return [(line.reason, line.what, line.rows) for line in found.lines]


def test_a_task_that_leaves_nothing_out_has_no_such_section() -> None:
    """Nor has one that fails over a row, and one whose worker tells of such rows what cannot be."""
    assert panel({"rows": 3}) is None
    assert panel(None, expect=[{"name": "known", "where": "delay IS NOT NULL"}]) is None
    assert panel({"quarantined": "many", "left_out": 3}) is None


def test_what_may_be_left_out_is_shown_before_anything_is() -> None:
    """Whoever looks sees that the task would say so."""
    found = panel(None, **SIFTING)
    assert found is not None
    assert (found.dropped, found.quarantined, found.puts_aside) == ("0", "0", True)
    assert lines(found) == [("sane", "dropped", "0"), ("late", "put aside", "0")]


def test_of_dropped_rows_there_are_none_to_look_at() -> None:
    """Nothing leads to a page that could only say so."""
    found = panel(None, expect=[SIFTING["expect"][1]])
    assert found is not None
    assert not found.puts_aside


def test_rows_are_counted_once_in_all_and_by_each_of_their_reasons() -> None:
    """Also where the definition has changed since."""
    metrics = {"dropped": 1234, "quarantined": 5, "left_out": {"late": 5, "sane": 1236, "old": 2}}
    found = panel(metrics, **SIFTING)
    assert found is not None
    assert (found.dropped, found.quarantined) == ("1,234", "5")
    assert lines(found) == [
        ("sane", "dropped", "1,236"),
        ("late", "put aside", "5"),
        ("old", "no reason any more", "2"),
    ]
    assert lines(panel(metrics)) != []


def test_there_is_an_end_to_what_a_worker_can_have_shown() -> None:
    """A report may have thousands of names."""
    told = {f"r{number}": 1 for number in range(5000)}
    found = panel({"quarantined": 1, "left_out": told}, **SIFTING)
    assert found is not None
    assert len(found.lines) == 2 * MOST_REASONS
