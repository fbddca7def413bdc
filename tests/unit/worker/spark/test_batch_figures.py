"""From Spark's records to figures, by records that Spark 4.1 and 4.3 have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from worker.costs import NO_COSTS, Costs, Phases
from worker.spark.batch_figures import costs_of, metrics_of
from worker.spark.progress import ProgressTracker

RECORDED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "recorded_batches.json").read_text()
)
"""By Spark's version and what the query does: the third batch of each, `first` the first of a window."""
VERSIONS = [*RECORDED]


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """What one version has written."""
    return RECORDED[request.param]


def test_both_versions_are_there() -> None:
    """The oldest and the newest that a worker takes."""
    assert [version[:3] for version in VERSIONS] == ["4.1", "4.3"]


@pytest.mark.parametrize(
    ("query", "rows", "late"),
    [("window", 5, 2), ("session", 6, 10), ("dedup", 20, 10), ("join", 70, 10), ("rocksdb", 20, 10)],
)
def test_a_query_with_state(recorded: dict[str, dict[str, Any]], query: str, rows: int, late: int) -> None:
    """Rows and sizes, by either store, and how many rows came too late for it."""
    told = recorded[query]
    state = metrics_of(told)["state"]
    assert state["rows"] == rows
    assert state["bytes"] > 0
    assert state["memory_bytes"] > 0
    assert costs_of(told, None).late_rows == late


def test_the_operators_of_a_query_add_up(recorded: dict[str, dict[str, Any]]) -> None:
    """Duplicates are dropped, then windows are counted: two states."""
    told = recorded["chain"]
    operators = told["stateOperators"]
    assert len(operators) == 2
    state = metrics_of(told)["state"]
    assert state["rows"] == 25
    assert state["memory_bytes"] == sum(each["memoryUsedBytes"] for each in operators)
    assert costs_of(told, None).late_rows == 10


def test_the_watermark_and_how_far_it_is_behind(recorded: dict[str, dict[str, Any]]) -> None:
    """In milliseconds since 1970; the year 1970 itself is none."""
    told = recorded["join"] | {"timestamp": "2026-01-01T12:49:30.250Z"}
    metrics = metrics_of(told)
    assert metrics["watermark_ms"] == 1_767_271_740_000
    assert metrics["watermark_lag_ms"] == 30_250
    assert "watermark_ms" not in metrics_of(recorded["first"])
    assert "watermark_ms" not in metrics_of(recorded["nowm"])
    assert metrics_of(told | {"timestamp": "2026-01-01T12:00:00.000Z"})["watermark_lag_ms"] == 0


def test_a_query_without_state_or_watermark_has_no_figures_of_them(
    recorded: dict[str, dict[str, Any]],
) -> None:
    """No rows of it are too late, which is not the same as none so far."""
    assert metrics_of(recorded["plain"]).keys() == {"phases_ms"}
    assert costs_of(recorded["plain"], None).late_rows is None
    assert costs_of(recorded["nowm"], None).late_rows is None
    assert costs_of(recorded["first"], None).late_rows == 0


def test_the_time_of_a_batch_by_phase(recorded: dict[str, dict[str, Any]]) -> None:
    """Nearly all of it has a phase."""
    told = recorded["dedup"]
    took = told["durationMs"]
    phases = costs_of(told, None).phases
    assert phases == Phases(
        took["queryPlanning"],
        took["latestOffset"] + took["getBatch"],
        took["addBatch"],
        took["walCommit"] + took["commitOffsets"],
    )
    assert metrics_of(told)["phases_ms"] == structs.asdict(phases)
    assert phases.total > 0.9 * took["triggerExecution"]


def test_a_batch_is_late_if_it_took_longer_than_the_interval() -> None:
    """Without an interval none can be."""
    told = {"batchDuration": 500}
    assert costs_of(told, 499).late_batches == 1
    assert costs_of(told, 500).late_batches == 0
    assert costs_of(told, None).late_batches is None


def test_what_a_record_lacks_is_not_made_up() -> None:
    """Clients and versions leave things out."""
    assert metrics_of({}) == {}
    assert costs_of({}, None) == NO_COSTS
    operator = {"numRowsTotal": 3, "memoryUsedBytes": 100}
    assert metrics_of({"stateOperators": [operator]})["state"] == {"rows": 3, "memory_bytes": 100}


def test_costs_add_up_batch_by_batch(recorded: dict[str, dict[str, Any]]) -> None:
    """What is spilled is told from the start of the query already."""
    tracker = ProgressTracker(interval_ms=1)
    for batch in range(2):
        told = recorded["dedup"] | {"batchId": batch}
        assert tracker.observe(told, spilled_bytes=1000 * (batch + 1))
    assert tracker.last is not None
    once = costs_of(recorded["dedup"], 1)
    assert tracker.last.totals.costs == Costs(
        once.phases + once.phases, late_batches=2, late_rows=20, spilled_bytes=2000
    )


def test_what_nobody_can_tell_of_one_query_counts_for_nothing_in_a_task() -> None:
    """Its next query may tell it."""
    assert Costs(late_rows=3) + Costs(late_batches=1) == Costs(late_batches=1, late_rows=3)
