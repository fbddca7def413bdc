"""What workers take of their machines, as the manager passes it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.commands import DescribeGroup
from protocol.messages.ownership import ReportRequest
from protocol.messages.resources import WorkerResources

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench


def taken(bench: Bench) -> dict[str, WorkerResources | None]:
    """By member, as an admin sees it."""
    described = bench.ask(DescribeGroup()).answer
    return {member.member_id: member.resources for member in described.members}


def test_the_last_word_of_a_worker_is_shown_with_it(bench: Bench) -> None:
    """It needs no task for that, and a report without it takes nothing back."""
    a, b = bench.herd(2, "t")
    for heap in (5, 7):
        told = WorkerResources(heap_bytes=heap)
        bench.ask(ReportRequest(member_id=a, tasks=(), resources=told))
    bench.ask(ReportRequest(member_id=a, tasks=()))
    assert taken(bench) == {a: WorkerResources(heap_bytes=7), b: None}


def test_it_is_in_memory_only(bench: Bench) -> None:
    """After ten seconds it is told anew; nothing waits for a database for it."""
    (a,) = bench.herd(1, "t")
    bench.ask(ReportRequest(member_id=a, tasks=(), resources=WorkerResources(heap_bytes=5)))
    bench.crash()
    assert taken(bench) == {a: None}
