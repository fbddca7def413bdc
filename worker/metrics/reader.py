"""What is read off a worker when somebody asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telemetry.metrics import family
from worker.metrics import catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from telemetry.metrics import Family, Metric
    from worker.membership.states import MemberState
    from worker.tasks.task_status import TaskView


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as those who watch it see it; `lease_s` is how long it may still write, in seconds."""

    group: str
    member_id: str
    generation: int
    state: MemberState
    lease_s: float
    tasks: tuple[TaskView, ...]


class WorkerReader:
    """Prometheus's collector of everything that has a present value. To be called in the event loop."""

    def __init__(self, view: Callable[[], WorkerView]) -> None:
        self._view = view

    def collect(self) -> Iterator[Family]:
        """The worker, then its tasks; a task's series end when it moves away."""
        worker = self._view()
        group = worker.group
        states = Counter(task.state.value for task in worker.tasks)
        yield _family(catalog.STATE, [((group, worker.state.value), 1)])
        yield _family(catalog.MEMBER, [((group, worker.member_id), 1)] if worker.member_id else [])
        yield _family(catalog.GENERATION, [((group,), worker.generation)])
        yield _family(catalog.LEASE, [((group,), worker.lease_s)])
        yield _family(catalog.TASKS, [((group, state), count) for state, count in sorted(states.items())])
        yield from _of_tasks(group, worker.tasks)


def _of_tasks(group: str, tasks: Iterable[TaskView]) -> Iterator[Family]:
    families = {metric: family(metric) for metric in catalog.CATALOG if metric.labels[:2] == catalog.TASK}
    for task in tasks:
        for metric, label, value in _figures(task):
            families[metric].add_metric((group, task.task, *label), value)
    yield from families.values()


def _figures(task: TaskView) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    yield catalog.TASK_STATE, (task.state.value,), 1
    yield catalog.TOKEN, (), task.token
    yield catalog.ROWS, (), task.totals.rows
    yield catalog.BATCHES, (), task.totals.batches
    yield catalog.BATCH_SECONDS, (), task.totals.busy_ms / 1000
    yield catalog.RESTARTS, (), task.restarts
    yield catalog.HAS_WORK, (), task.has_work
    if task.idle_s is not None:
        yield catalog.IDLE, (), task.idle_s
    if "batch_ms" in task.metrics:
        yield catalog.LAST_BATCH, (), task.metrics["batch_ms"] / 1000
    lag: dict[str, Any] = task.metrics.get("lag", {})
    for unit, behind in lag.items():
        yield catalog.LAG, (unit,), behind


def _family(metric: Metric, samples: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    found = family(metric)
    for labels, value in samples:
        found.add_metric(labels, value)
    return found
