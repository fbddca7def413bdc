"""A worker's page: what it takes, and which of its tasks costs what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.console.charts.ranked import SHOWN, Bar, ranked
from manager.console.formatting import size
from manager.console.page import PageRequest
from manager.console.pages.worker import WorkerPage, resources_of, rise_of, worker_page
from manager.core.commands import TaskCost
from protocol.errors import RefusedError
from protocol.messages.base import MAX_INT
from protocol.messages.heap import HeapRise
from protocol.messages.resources import WorkerResources
from tests.unit.manager.console.answers import NOW, counts, group, member, task

if TYPE_CHECKING:
    from protocol.messages.tasks import TaskView

ANNA, BERTA = "anna-1", "berta-2"


def view(*tasks: TaskView, takes: WorkerResources | None = None, who: str = ANNA, **query: str) -> WorkerPage:
    known = group(member(ANNA, metadata={"capacity": 2.0}, resources=takes), member(BERTA))
    request = PageRequest("flights", "", query, member=who)
    return worker_page(known, counts(*tasks), [cost(each) for each in tasks], request, NOW)


def cost(of: TaskView) -> TaskCost:
    """What the core tells of a task of this worker."""
    return TaskCost(of.task, of.state, of.metrics)


def costing(name: str, load: float | None, memory: int | None, **more: Any) -> TaskView:
    """A task that measures so much."""
    metrics = {**more, **({} if load is None else {"load": load})}
    if memory is not None:
        metrics["state"] = {"rows": 12, "memory_bytes": memory}
    return task(name, owner=ANNA, metrics=metrics)


def test_the_dearest_task_is_the_first() -> None:
    """By its share of the time, which is its load of the worker's capacity, then by its state."""
    shown = view(
        costing("small", 0.1, 1000),
        costing("busy", 1.0, None),
        costing(
            "fat", 0.1, 64_336_000, batch_ms=1500, watermark_lag_ms=5_400_000, late_rows=3, spilled_bytes=0
        ),
        costing("new", None, None),
    )
    assert [(line.task, line.busy, line.state_memory) for line in shown.tasks.items] == [
        ("busy", "50 %", None),
        ("fat", "5 %", "64.3 MB"),
        ("small", "5 %", "1 kB"),
        ("new", None, None),
    ]
    fat = shown.tasks.items[1]
    assert (fat.batch, fat.state_rows, fat.watermark_lag) == ("1.5 s", "12", "1 h 30 min")
    assert (fat.late_batches, fat.late_rows, fat.spilled) == (None, "3", "0 B")
    assert shown.busy is not None
    assert "busy: 50 %; fat: 5 %; small: 5 %." in shown.busy
    assert shown.memory is not None
    assert "fat: 64.3 MB; small: 1 kB." in shown.memory


def test_what_nobody_has_measured_is_no_chart() -> None:
    """A bar of nothing says nothing."""
    shown = view(costing("new", None, None), costing("idle", 0.0, None))
    assert (shown.busy, shown.memory) == (None, None)


def test_what_it_takes_is_said_with_what_there_is() -> None:
    """What it has not told is not there."""
    takes = WorkerResources(
        heap_bytes=500_000_000,
        heap_max_bytes=1_000_000_000,
        gc_share=0.125,
        python_processes=0,
        checkpoint_free_bytes=9_000_000,
        checkpoint_disk_bytes=100_000_000,
        loop_lag_ms=12,
    )
    assert [(each.name, each.value, each.percent) for each in resources_of(takes)] == [
        ("Heap in use", "500 MB of 1 GB", 50),
        ("Free on their disk", "9 MB of 100 MB", 9),
        ("Time in GC", "12.5 %", 12),
        ("Processes of Python", "0", None),
        ("Event loop late by", "12 ms", None),
    ]
    assert view(takes=takes).resources == tuple(resources_of(takes))
    assert view().resources == ()


def test_a_heap_that_rises_with_one_of_several_says_with_which() -> None:
    """As far as there is room for their names."""
    rise = HeapRise(
        since_ms=0, over_ms=1_200_000, from_bytes=2**28, to_bytes=2**29, candidates=12, tasks=("a", "b")
    )
    assert rise_of(rise) == (
        "Its heap grows, from 268.4 MB to 536.9 MB in 20 min, with one of a, b and 10 more."
        " Move or stop one of them, and it is known."
    )


def test_a_thousand_tasks_are_a_page_at_a_time() -> None:
    """And a dozen bars, the last of which is all others."""
    tasks = [costing(f"t{number:04}", 0.001, 1000) for number in range(1000)]
    shown = view(*tasks, page="2")
    assert [line.task for line in shown.tasks.items] == [f"t{number:04}" for number in range(50, 100)]
    assert shown.memory is not None
    assert shown.memory.count("<rect") == SHOWN
    assert "989 others: 989 kB." in shown.memory


def test_all_are_shown_where_there_is_room() -> None:
    """What is equal goes by its name."""
    chart = ranked("k", "What", [Bar("b", 1), Bar("a", 1), Bar("c", 0)], size)
    assert chart is not None
    assert "a: 1 B; b: 1 B." in chart


def test_who_is_no_member_has_no_page() -> None:
    """It may have left."""
    with pytest.raises(RefusedError, match="no such member"):
        view(who="gone-3")


def test_no_figure_that_is_taken_in_is_too_large_to_be_shown() -> None:
    """A worker may tell any; the page would fail for everybody."""
    most = dict.fromkeys(WorkerResources.__struct_fields__, MAX_INT)
    shown = resources_of(msgspec.convert(most, WorkerResources))
    assert {each.value for each in shown if each.name == "Time in GC"} == {"900,719,925.5 G %"}
    with pytest.raises(msgspec.ValidationError, match="gc_share"):
        msgspec.convert({"gc_share": 1e308}, WorkerResources)
