from __future__ import annotations

from typing import Any

import pytest

from manager.core.task_metrics import INTERVAL_MS, SLOTS, TaskMetrics
from protocol.messages.base import MAX_INT

T0 = 1_700_000_000_000


def told(total: float, batch_ms: float = 5.0) -> dict[str, Any]:
    return {"total_rows": total, "batch_ms": batch_ms}


def shown(figures: TaskMetrics, now_ms: int = T0) -> list[tuple[int, float, int, float | None]]:
    return [(p.at_ms - T0, p.rows, p.batches, p.batch_ms) for p in figures.points(now_ms)]


def test_a_slot_adds_up_what_its_reports_tell() -> None:
    """Rows and batches are counted once however often they are told; of batches the longest is kept."""
    figures = TaskMetrics()
    figures.record(T0, None, None)
    figures.record(T0 + 1, 0, told(10, 7.0))
    figures.record(T0 + 2, 0, told(10, 7.0))
    figures.record(T0 + 3, 3, told(40, 9.0))
    figures.record(T0 + 4, 4, told(50, 2.0))
    figures.record(T0 + INTERVAL_MS, 5, told(51, 1.0))
    assert shown(figures) == [(0, 50.0, 4, 9.0), (INTERVAL_MS, 1.0, 1, 1.0)]


def test_what_was_before_the_first_look_does_not_count() -> None:
    """A manager that takes a running task over does not take a day's rows for those of ten seconds."""
    figures = TaskMetrics()
    figures.record(T0, 900, told(1_000_000))
    assert shown(figures) == []
    figures.record(T0 + 1, 901, told(1_000_010))
    assert shown(figures) == [(0, 10.0, 1, 5.0)]


def test_a_total_that_falls_is_that_of_another_query() -> None:
    """After a restart the count begins at nothing; a reset of the task begins its batches anew, too."""
    figures = TaskMetrics()
    figures.record(T0, None, None)
    figures.record(T0, 7, told(100))
    figures.record(T0, 8, told(30))
    figures.record(T0, 0, told(1))
    assert shown(figures) == [(0, 131.0, 2, 5.0)]


def test_batches_that_jump_about_are_counted_to_an_end() -> None:
    """A worker may report any batch after any other, as often as it likes."""
    figures = TaskMetrics()
    for _ in range(1100):
        figures.record(T0, -1, None)
        figures.record(T0, MAX_INT, None)
    assert [point.batches for point in figures.points(T0)] == [MAX_INT]


def test_it_keeps_an_hour_and_no_more() -> None:
    """The ring forgets its oldest slot for the newest one, and shows nothing that is older than an hour."""
    figures = TaskMetrics()
    figures.record(T0, None, None)
    for step in range(SLOTS + 5):
        figures.record(T0 + step * INTERVAL_MS, step, told(step + 1))
    points = shown(figures, T0 + (SLOTS + 4) * INTERVAL_MS)
    assert len(points) == SLOTS
    assert [at for at, *_ in points] == [step * INTERVAL_MS for step in range(5, SLOTS + 5)]
    assert len(shown(figures, T0 + (SLOTS + 14) * INTERVAL_MS)) == SLOTS - 10
    assert shown(figures, T0 + 3 * SLOTS * INTERVAL_MS) == []


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    """What comes then is added to the newest slot."""
    figures = TaskMetrics()
    figures.record(T0, None, None)
    figures.record(T0, 1, told(5))
    figures.record(T0 - 5 * INTERVAL_MS, 2, told(6))
    assert shown(figures) == [(0, 6.0, 1, 5.0)]


@pytest.mark.parametrize("value", ["many", None, True, -1, float("inf"), float("nan"), 10**400, [], {}])
def test_figures_that_are_none_are_passed_over(value: object) -> None:
    """Metrics may be any JSON; what is no figure counts for nothing, and harms no other."""
    figures = TaskMetrics()
    figures.record(T0, 0, {"total_rows": 1})
    figures.record(T0, 1, {"total_rows": value, "batch_ms": value})
    assert shown(figures) == [(0, 0.0, 1, None)]
