"""What a task costs, on its page."""

from __future__ import annotations

from typing import Any

import pytest

from manager.console.pages.costs import costs_panel

TOLD: dict[str, Any] = {
    "phases_ms": {"planning": 16, "reading": 54, "writing": 264, "commit": 81},
    "state": {"rows": 1250, "bytes": 4672, "memory_bytes": 11_664},
    "watermark_ms": 1_772_377_445_000,
    "watermark_lag_ms": 5_400_000,
    "late_rows": 10,
    "late_batches": 0,
    "spilled_bytes": 689_532,
}


def test_all_that_is_told() -> None:
    """In words, and where the time went as bars."""
    panel = costs_panel(TOLD)
    assert panel is not None
    assert [(fact.name, fact.value) for fact in panel.facts] == [
        ("Rows in its state", "1,250"),
        ("Size of the state", "4.7 kB"),
        ("Memory of the state", "11.7 kB"),
        ("Watermark", "2026-03-01 15:04:05 UTC"),
        ("It was behind by", "1 h 30 min"),
        ("Rows dropped as too late", "10"),
        ("Batches longer than its trigger", "0"),
        ("Spilled to disk", "689.5 kB"),
    ]
    assert panel.phases is not None
    assert "Planning: 16 ms; Asking sources: 54 ms; Reading and writing rows: 264 ms" in panel.phases


@pytest.mark.parametrize("metrics", [None, {}, {"rows": 3}, {"state": "large", "phases_ms": [1]}])
def test_a_worker_that_tells_of_no_costs_has_no_panel(metrics: dict[str, Any] | None) -> None:
    """As an earlier one."""
    assert costs_panel(metrics) is None


def test_whatever_a_worker_tells_the_page_is_there() -> None:
    """It is no figure, or one of another century."""
    panel = costs_panel({"watermark_ms": 2**53 - 1, "late_rows": "many", "state": {"rows": -1, "bytes": 0}})
    assert panel is not None
    assert [(fact.name, fact.value) for fact in panel.facts] == [
        ("Size of the state", "0 B"),
        ("Watermark", "beyond the year 9999"),
    ]
    assert costs_panel({"phases_ms": {"writing": 0}}) is not None
