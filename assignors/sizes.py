"""How much work each task is, in one unit for all: what was measured, what is declared, and what is neither.

`Task.load` is the work a task was measured to be: the share of the time that its batches take, times the
capacity of the worker they ran on. So 0.25 is a quarter of the time of a worker of capacity 1, and an eighth
of one of capacity 2. Tasks that take next to nothing all count for a little: a query with nothing to do costs
something too, and where there is next to nothing to measure, what is measured is noise.

`Task.weight` is what its definition declares, on a scale that only the group itself knows. So a task that was
not measured yet counts as its weight times what a unit of weight has turned out to be in those that were;
while none was, weights alone count.
"""

from __future__ import annotations

from math import fsum
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assignors.base import Task

LEAST: Final = 0.02
"""What a task counts for at least, once it was measured."""
_GRAIN: Final = 1_000_000
"""Units in the mean size. Whole numbers add up to the same in any order, and to nothing when all is gone."""
_TINY: Final = 1e-100
_HUGE: Final = 1e100


def sizes(tasks: Sequence[Task]) -> dict[str, int]:
    """The size of each task by name, in units that only this call's results share; each at least 1."""
    ordered = sorted(tasks, key=attrgetter("name"))
    measured = ((task.name, task.load) for task in ordered)
    known = {name: max(load, LEAST) for name, load in measured if load is not None and is_figure(load)}
    rate = _ratio(fsum(known.values()), fsum(_weight(task) for task in ordered if task.name in known))
    raw = {task.name: known.get(task.name, _weight(task) * rate) for task in ordered}
    mean = _ratio(fsum(raw.values()), len(raw))
    return {name: max(round(size / mean * _GRAIN), 1) for name, size in raw.items()}


def _ratio(amount: float, of: float) -> float:
    """How much a unit is; 1 where there is none."""
    return amount / of if amount > 0 else 1.0


def _weight(task: Task) -> float:
    return task.weight if task.weight and is_figure(task.weight) else 1.0


def is_figure(value: float) -> bool:
    """Whether `value` can be reckoned with: what is so far out that ratios overflow means nothing."""
    return value == 0 or _TINY < value < _HUGE
