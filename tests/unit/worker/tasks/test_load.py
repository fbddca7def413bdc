from __future__ import annotations

import pytest

from worker.tasks.task_status import MEMORY_S, WARM_UP_S, Load


def watch(load: Load, seconds: int, batch_ms: float, *, start: int = 0, every: int = 1) -> Load:
    """One look a second at a query that finishes a batch every so many seconds."""
    for now in range(start + 1, start + seconds + 1):
        load.observe(now // every, batch_ms, float(now))
    return load


def test_nothing_is_said_of_a_query_that_has_just_begun() -> None:
    """Its first batches say nothing of the later ones."""
    assert watch(Load(1.0, 0.0), int(WARM_UP_S) - 1, 500).measured() is None
    assert watch(Load(1.0, 0.0), int(WARM_UP_S), 500).measured() is not None


@pytest.mark.parametrize(("every", "batch_ms", "share"), [(1, 250, 0.25), (2, 500, 0.25), (4, 3000, 0.75)])
def test_it_is_the_share_of_the_time_that_batches_take(every: int, batch_ms: float, share: float) -> None:
    """However often they come."""
    assert watch(Load(1.0, 0.0), 200, batch_ms, every=every).measured() == pytest.approx(share, rel=0.1)


def test_it_counts_in_units_of_a_worker_of_capacity_one() -> None:
    """A quarter of the time of a worker that can bear two is half of one that can bear one."""
    assert watch(Load(2.0, 0.0), 200, 250).measured() == pytest.approx(0.5, rel=0.05)


def test_several_batches_between_two_looks_all_count() -> None:
    """Each as the last one."""
    load = Load(1.0, 0.0)
    for now in range(1, 100):
        load.observe(5 * now, 100, float(now))
    assert load.measured() == pytest.approx(0.5, rel=0.05)


def test_a_query_is_never_more_than_all_of_the_time() -> None:
    """Whatever Spark says that its batches took."""
    assert watch(Load(1.0, 0.0), 100, 5000).measured() == pytest.approx(1.0, rel=0.05)


def test_what_is_long_past_does_not_count() -> None:
    """A busy hour is forgotten after some minutes of rest."""
    load = watch(Load(1.0, 0.0), 600, 900)
    assert load.measured() == pytest.approx(0.9, rel=0.05)
    for now in range(601, 601 + int(5 * MEMORY_S)):
        load.observe(600, 900, float(now))
    assert (load.measured() or 0) <= 0.01
