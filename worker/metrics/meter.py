"""A worker's instruments: what it counts as it happens, and what is read off it when somebody asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import structs

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import TaskErrorsResponse
from telemetry.loop_lag import LOOP_LAG, LoopLag
from telemetry.metrics import Instruments, family, gauges_as_read
from worker.metrics import catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import msgspec

    from protocol.messages.lag import TaskLag
    from protocol.messages.resources import WorkerResources
    from telemetry.metrics import Family, Metric
    from worker.costs import Costs
    from worker.membership.states import MemberState
    from worker.tasks.task_status import TaskSnapshot


_IN_MS = {
    "batch_ms": catalog.LAST_BATCH,
    "watermark_ms": catalog.WATERMARK,
    "watermark_lag_ms": catalog.WATERMARK_LAG,
}
_OF_STATE = {
    "rows": catalog.STATE_ROWS,
    "bytes": catalog.STATE_BYTES,
    "memory_bytes": catalog.STATE_MEMORY,
}
"""What an engine tells of the last batch, by the names it has there."""

_RESOURCES = (
    (catalog.HEAP, "heap_bytes", 1),
    (catalog.HEAP_MAX, "heap_max_bytes", 1),
    (catalog.HEAP_AFTER_GC, "heap_after_gc_bytes", 1),
    (catalog.HEAP_LIVE, "heap_live_bytes", 1),
    (catalog.GC_SECONDS, "gc_ms", 1000),
    (catalog.DIRECT, "direct_bytes", 1),
    (catalog.PYTHON_PROCESSES, "python_processes", 1),
    (catalog.PYTHON_BYTES, "python_bytes", 1),
    (catalog.CHECKPOINT_BYTES, "checkpoint_bytes", 1),
    (catalog.CHECKPOINT_FREE, "checkpoint_free_bytes", 1),
    (catalog.CHECKPOINT_DISK, "checkpoint_disk_bytes", 1),
)
"""What a worker takes of its machine, by its names, and how many units of that make one of the metric's."""


class Meter:
    """The instruments of one worker, which is in one group."""

    def __init__(self, group: str) -> None:
        self.instruments = make = Instruments()
        self._group = group
        self._requests = make.counter(catalog.REQUESTS)
        self._stale = make.counter(catalog.STALE_TOKENS)
        self._fenced = make.counter(catalog.FENCED_WRITES).labels(group)
        self._losses = make.counter(catalog.LOSSES).labels(group)
        self.loop_lag = LoopLag(make.histogram(LOOP_LAG))
        for operation in ("report", "release"):  # a series that begins with an event hides it from `increase`
            self._stale.labels(group, operation)

    def answered(self, operation: str, answer: msgspec.Struct) -> None:
        """The manager answered a request, or nobody did."""
        code = answer.code if isinstance(answer, Failure) else ErrorCode.NONE
        self._requests.labels(self._group, operation, code.name).inc()
        if isinstance(answer, TaskErrorsResponse):
            stale = sum(each == ErrorCode.STALE_TOKEN for each in answer.tasks.values())
            self._stale.labels(self._group, operation).inc(stale)

    def fenced(self) -> None:
        """A sink has refused a token."""
        self._fenced.inc()

    def lost(self) -> None:
        """Every task is lost."""
        self._losses.inc()


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as those who watch it see it; `lease_s` is how long it may still write, in seconds.

    `kafka_requests` are questions to brokers, by what for and whether they answered, `resources` is what it
    takes of its machine, as far as that is known.
    """

    group: str
    member_id: str
    generation: int
    state: MemberState
    lease_s: float
    tasks: tuple[TaskSnapshot, ...]
    ownerless: Mapping[str, TaskLag] = field(default_factory=dict)
    kafka_requests: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    resources: WorkerResources | None = None


class WorkerReader:
    """Prometheus's collector of everything that has a present value, at one moment; for any thread."""

    def __init__(self, worker: WorkerView) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Family]:
        """The worker, then its tasks; a task's series end when it moves away."""
        worker = self._worker
        group = worker.group
        states = Counter(task.state.value for task in worker.tasks)
        yield _family(catalog.STATE, [((group, worker.state.value), 1)])
        yield _family(catalog.MEMBER, [((group, worker.member_id), 1)] if worker.member_id else [])
        yield _family(catalog.GENERATION, [((group,), worker.generation)])
        yield _family(catalog.LEASE, [((group,), worker.lease_s)])
        yield _family(catalog.TASKS, [((group, state), count) for state, count in sorted(states.items())])
        asked = [
            ((group, purpose, "yes" if answered else "no"), count)
            for (purpose, answered), count in sorted(worker.kafka_requests.items())
        ]
        yield _family(catalog.KAFKA_REQUESTS, asked)
        yield from _of_machine(worker)
        yield from _of_tasks(worker)


def _of_machine(worker: WorkerView) -> Iterator[Family]:
    """What is not known has no series."""
    for metric, name, divisor in _RESOURCES:
        value = getattr(worker.resources, name, None)
        yield _family(metric, [] if value is None else [((worker.group,), value / divisor)])


def _of_tasks(worker: WorkerView) -> Iterator[Family]:
    """Its own tasks, and of those that nobody owns and it has measured, how far they are behind."""
    families = {metric: family(metric) for metric in catalog.CATALOG if metric.labels[:2] == catalog.TASK}
    lags = [(task.task, task.lag) for task in worker.tasks if task.lag is not None]
    lags += worker.ownerless.items()
    told = [(task.task, _figures(task)) for task in worker.tasks]
    told += [(name, _behind(lag)) for name, lag in lags]
    for name, figures in told:
        for metric, label, value in figures:
            families[metric].add_metric((worker.group, name, *label), value)
    families[catalog.BEHIND_PARTITION] = gauges_as_read(
        catalog.BEHIND_PARTITION, _partitions(worker.group, lags)
    )
    yield from families.values()


def _partitions(
    group: str, lags: Iterable[tuple[str, TaskLag]]
) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    """Labels and value of each partition of which it is known how far its task is behind."""
    for task, lag in lags:
        for each in lag.partitions:
            if each.behind is not None:
                yield (group, task, each.topic, str(each.partition)), each.behind


def _figures(task: TaskSnapshot) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    yield catalog.TASK_STATE, (task.state.value,), 1
    yield catalog.TOKEN, (), task.token
    yield catalog.ROWS, (), task.totals.rows
    yield catalog.BATCHES, (), task.totals.batches
    yield catalog.BATCH_SECONDS, (), task.totals.busy_ms / 1000
    yield from _costs(task.totals.costs)
    yield from _last_batch(task.metrics)
    yield from _left_out(task)
    yield catalog.RESTARTS, (), task.restarts
    yield catalog.OUTAGES, (), task.outages
    yield catalog.HAS_WORK, (), task.has_work
    if task.idle_s is not None:
        yield catalog.IDLE, (), task.idle_s


def _costs(costs: Costs) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    """What does not apply to the task is left out."""
    for phase, took_ms in structs.asdict(costs.phases).items():
        yield catalog.PHASES, (phase,), took_ms / 1000
    for metric, count in (
        (catalog.LATE_BATCHES, costs.late_batches),
        (catalog.LATE_ROWS, costs.late_rows),
        (catalog.SPILLED, costs.spilled_bytes),
    ):
        if count is not None:
            yield metric, (), count


def _last_batch(metrics: Mapping[str, Any]) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    for name, metric in _IN_MS.items():
        if name in metrics:
            yield metric, (), metrics[name] / 1000
    for name, metric in _OF_STATE.items():
        if name in metrics.get("state", {}):
            yield metric, (), metrics["state"][name]
    for unit, behind in metrics.get("lag", {}).items():
        yield catalog.LAG, (unit,), behind


def _left_out(task: TaskSnapshot) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    """From the start, at 0, of a task that may leave rows out: a step that is not seen is no increase."""
    left_out = task.totals.left_out
    if not left_out and not task.reasons:
        return
    yield catalog.DROPPED, (), left_out.dropped
    yield catalog.QUARANTINED, (), left_out.quarantined
    for reason in dict.fromkeys((*task.reasons, *left_out.reasons)):
        yield catalog.LEFT_OUT, (reason,), left_out.reasons.get(reason, 0)


def _behind(lag: TaskLag) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    if lag.rows is not None:
        yield catalog.BEHIND, (), lag.rows
        yield catalog.LOST_ROWS, (), lag.lost
    if lag.behind_ms is not None:
        yield catalog.BEHIND_SECONDS, (), lag.behind_ms / 1000


def _family(metric: Metric, samples: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    found = family(metric)
    for labels, value in samples:
        found.add_metric(labels, value)
    return found
