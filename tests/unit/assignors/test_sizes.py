from __future__ import annotations

from math import inf, nan

import pytest

from assignors.base import Task
from assignors.sizes import sizes

MEAN = 1_000_000


def _of(*tasks: Task) -> list[float]:
    """Sizes in order, 1.0 being the mean."""
    found = sizes(tasks)
    return [found[task.name] / MEAN for task in tasks]


def test_declared_weights_count_while_nothing_was_measured() -> None:
    """Only their ratios do."""
    assert _of(Task("a", 1.0), Task("b", 3.0)) == [0.5, 1.5]
    assert _of(Task("a", 100.0), Task("b", 300.0)) == [0.5, 1.5]


def test_what_was_measured_outweighs_what_was_declared() -> None:
    """Somebody thought b heavy; it is not."""
    assert _of(Task("a", 1.0, load=0.3), Task("b", 9.0, load=0.1)) == [1.5, 0.5]


def test_what_was_not_measured_counts_as_its_weight_does_elsewhere() -> None:
    """Two units of weight cost 0.2 in all, so the two of c cost 0.2."""
    assert _of(Task("a", load=0.05), Task("b", load=0.15), Task("c", 2.0)) == [0.375, 1.125, 1.5]


def test_an_idle_task_counts_for_something() -> None:
    """A fiftieth of a worker's time."""
    assert _of(Task("a", load=0.0), Task("b", load=0.08)) == [0.4, 1.6]


def test_tasks_that_take_next_to_nothing_are_alike() -> None:
    """What is measured there is noise."""
    assert _of(Task("a", load=0.0), Task("b", load=0.001), Task("c", load=0.02)) == [1.0, 1.0, 1.0]
    assert sizes([]) == {}


def test_no_task_is_nothing() -> None:
    """However little it weighs beside another; a worker would be given any number of them."""
    assert sizes([Task("a", 1e-50), Task("b", 1e50)])["a"] == 1


@pytest.mark.parametrize("nonsense", [nan, inf, -inf, -1.0, 1e308, 5e-324])
def test_a_figure_that_means_nothing_is_no_measure(nonsense: float) -> None:
    """Neither as a load nor as a weight; nothing is raised, and no task weighs nothing."""
    assert _of(Task("a", load=nonsense), Task("b")) == [1.0, 1.0]
    assert _of(Task("a", weight=nonsense), Task("b")) == [1.0, 1.0]
    assert _of(Task("a", weight=0.0), Task("b")) == [1.0, 1.0]
