from __future__ import annotations

from typing import Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import HeartbeatResponse
from protocol.messages.ownership import TaskErrorsResponse
from protocol.messages.resources import WorkerResources
from protocol.states import TaskState
from worker.costs import Costs, Phases
from worker.left_out import LeftOut
from worker.membership.states import MemberState
from worker.metrics.meter import Meter, WorkerReader, WorkerView
from worker.query_engine import Totals
from worker.tasks.task_status import TaskSnapshot


def task(name: str, **changes: Any) -> TaskSnapshot:
    """A task that has run for a while."""
    told: dict[str, Any] = {
        "token": 3,
        "state": TaskState.RUNNING,
        "cause": None,
        "batch_id": 8,
        "metrics": {"batch_ms": 250, "lag": {"offsets": 12}},
        "totals": Totals(9, 900, 2000),
        "restarts": 1,
        "outages": 4,
        "idle_s": 4.0,
        "has_work": True,
    }
    return TaskSnapshot(task=name, **{**told, **changes})


class Scrape:
    """What a scrape of a worker with these tasks would show."""

    def __init__(self, *tasks: TaskSnapshot, member_id: str = "worker-1") -> None:
        self.meter = Meter("g")
        view = WorkerView("g", member_id, 7, MemberState.STABLE, 8.5, tasks)
        self.meter.instruments.read_at_scrape(WorkerReader(view))

    def value(self, name: str, **labels: str) -> float | None:
        return self.meter.instruments.registry.get_sample_value(name, {"group": "g", **labels})


def test_a_task_shows_all_that_is_known_of_it() -> None:
    """Figures since this worker has it, and the last batch's."""
    scrape = Scrape(task("t1"))
    assert scrape.value("sparkherd_task_state", task="t1", state="RUNNING") == 1
    assert scrape.value("sparkherd_task_token", task="t1") == 3
    assert scrape.value("sparkherd_task_rows_total", task="t1") == 900
    assert scrape.value("sparkherd_task_batches_total", task="t1") == 9
    assert scrape.value("sparkherd_task_batch_seconds_total", task="t1") == 2.0
    assert scrape.value("sparkherd_task_last_batch_seconds", task="t1") == 0.25
    assert scrape.value("sparkherd_task_idle_seconds", task="t1") == 4.0
    assert scrape.value("sparkherd_task_has_data", task="t1") == 1
    assert scrape.value("sparkherd_task_source_lag", task="t1", unit="offsets") == 12
    assert scrape.value("sparkherd_task_restarts_total", task="t1") == 1
    assert scrape.value("sparkherd_task_outages_total", task="t1") == 4


def test_what_the_batches_of_a_task_have_cost() -> None:
    """Time by phase, what came too late, what was spilled; of the last batch its state and its watermark."""
    costs = Costs(Phases(1000, 200, 3000, 300), late_batches=2, late_rows=7, spilled_bytes=4096)
    metrics = {
        "state": {"rows": 70, "bytes": 17552, "memory_bytes": 64336},
        "watermark_ms": 1_500_500,
        "watermark_lag_ms": 2500,
    }
    scrape = Scrape(task("t1", totals=Totals(9, 900, 2000, costs=costs), metrics=metrics))
    phases = ("planning", "reading", "writing", "commit")
    took = [scrape.value("sparkherd_task_phase_seconds_total", task="t1", phase=each) for each in phases]
    assert took == [1, 0.2, 3, 0.3]
    assert scrape.value("sparkherd_task_late_batches_total", task="t1") == 2
    assert scrape.value("sparkherd_task_late_rows_total", task="t1") == 7
    assert scrape.value("sparkherd_task_spilled_bytes_total", task="t1") == 4096
    assert scrape.value("sparkherd_task_state_rows", task="t1") == 70
    assert scrape.value("sparkherd_task_state_bytes", task="t1") == 17552
    assert scrape.value("sparkherd_task_state_memory_bytes", task="t1") == 64336
    assert scrape.value("sparkherd_task_watermark_seconds", task="t1") == 1500.5
    assert scrape.value("sparkherd_task_watermark_lag_seconds", task="t1") == 2.5


def test_what_does_not_apply_to_a_task_is_no_0() -> None:
    """A task without state, watermark and interval has no series of them."""
    scrape = Scrape(task("t1"))
    for name in ("late_batches_total", "late_rows_total", "spilled_bytes_total", "state_rows"):
        assert scrape.value(f"sparkherd_task_{name}", task="t1") is None


def test_what_may_be_left_out_is_there_from_the_start_at_0() -> None:
    """A series that begins with an event hides it from `increase`."""
    scrape = Scrape(task("t1", reasons=("positive", "unreadable")))
    for name in ("dropped", "quarantined"):
        assert scrape.value(f"sparkherd_task_{name}_rows_total", task="t1") == 0
    for reason in ("positive", "unreadable"):
        assert scrape.value("sparkherd_task_left_out_rows_total", task="t1", reason=reason) == 0


def test_what_was_left_out_is_shown_in_all_and_by_what_for() -> None:
    """Each row once, and by each of its reasons; whatever the definition says of them by now."""
    left_out = LeftOut(4, 5, {"positive": 7, "refused": 2})
    scrape = Scrape(task("t1", totals=Totals(9, 900, 2000, left_out), reasons=("positive", "known")))
    assert scrape.value("sparkherd_task_dropped_rows_total", task="t1") == 4
    assert scrape.value("sparkherd_task_quarantined_rows_total", task="t1") == 5
    found = {
        reason: scrape.value("sparkherd_task_left_out_rows_total", task="t1", reason=reason)
        for reason in ("positive", "refused", "known")
    }
    assert found == {"positive": 7, "refused": 2, "known": 0}


def test_a_task_that_leaves_nothing_out_has_no_such_series() -> None:
    """There are many of these."""
    scrape = Scrape(task("t1"))
    assert scrape.value("sparkherd_task_dropped_rows_total", task="t1") is None
    assert scrape.value("sparkherd_task_quarantined_rows_total", task="t1") is None


def test_questions_to_brokers_are_counted_by_purpose() -> None:
    """Few series, however many clusters there are."""
    meter = Meter("g")
    asked = {("lag", True): 7, ("watch", False): 2}
    view = WorkerView("g", "m", 7, MemberState.STABLE, 8.5, (), kafka_requests=asked)
    meter.instruments.read_at_scrape(WorkerReader(view))
    value = meter.instruments.registry.get_sample_value
    name = "sparkherd_worker_kafka_requests_total"
    assert value(name, {"group": "g", "purpose": "lag", "answered": "yes"}) == 7
    assert value(name, {"group": "g", "purpose": "watch", "answered": "no"}) == 2


def test_what_a_worker_takes_of_its_machine() -> None:
    """In bytes and seconds; what is not known has no series."""
    meter = Meter("g")
    takes = WorkerResources(heap_bytes=500, heap_max_bytes=1000, gc_ms=2500, python_processes=0)
    view = WorkerView("g", "m", 7, MemberState.STABLE, 8.5, (), resources=takes)
    meter.instruments.read_at_scrape(WorkerReader(view))
    value = meter.instruments.registry.get_sample_value
    assert value("sparkherd_worker_heap_bytes", {"group": "g"}) == 500
    assert value("sparkherd_worker_heap_max_bytes", {"group": "g"}) == 1000
    assert value("sparkherd_worker_gc_seconds_total", {"group": "g"}) == 2.5
    assert value("sparkherd_worker_python_processes", {"group": "g"}) == 0
    assert value("sparkherd_worker_direct_bytes", {"group": "g"}) is None


def test_what_is_not_known_is_left_out() -> None:
    """A 0 would be a figure: nothing was measured of a task that has no query."""
    scrape = Scrape(task("t1", state=TaskState.FAILED, metrics={}, idle_s=None, has_work=False))
    assert scrape.value("sparkherd_task_idle_seconds", task="t1") is None
    assert scrape.value("sparkherd_task_last_batch_seconds", task="t1") is None
    assert scrape.value("sparkherd_task_source_lag", task="t1", unit="offsets") is None
    assert scrape.value("sparkherd_task_state", task="t1", state="FAILED") == 1


def test_a_worker_shows_itself() -> None:
    """Its membership, its lease, its tasks by state."""
    scrape = Scrape(task("t1"), task("t2"), task("t3", state=TaskState.PAUSED))
    assert scrape.value("sparkherd_worker_state", state="Stable") == 1
    assert scrape.value("sparkherd_worker_info", member="worker-1") == 1
    assert scrape.value("sparkherd_worker_generation") == 7
    assert scrape.value("sparkherd_worker_lease_seconds") == 8.5
    assert scrape.value("sparkherd_worker_tasks", state="RUNNING") == 2
    assert scrape.value("sparkherd_worker_tasks", state="PAUSED") == 1


def test_requests_are_counted_by_their_answers() -> None:
    """Those that nobody answered, too; STALE_TOKEN is inside of a good answer."""
    scrape = Scrape()
    scrape.meter.answered("heartbeat", HeartbeatResponse(tasks_revision=1))
    scrape.meter.answered("heartbeat", Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "gone"))
    scrape.meter.answered("report", TaskErrorsResponse(tasks={"t1": "STALE_TOKEN", "t2": "NONE"}))
    requests = "sparkherd_worker_requests_total"
    assert scrape.value(requests, operation="heartbeat", code="NONE") == 1
    assert scrape.value(requests, operation="heartbeat", code="COORDINATOR_NOT_AVAILABLE") == 1
    assert scrape.value("sparkherd_worker_stale_tokens_total", operation="report") == 1
    assert scrape.value("sparkherd_worker_stale_tokens_total", operation="release") == 0
