from __future__ import annotations

from protocol.messages.resources import WorkerResources
from worker.isolation.together import together

OWN = WorkerResources(heap_bytes=10, gc_share=0.1, python_processes=0, checkpoint_free_bytes=7, loop_lag_ms=3)


def test_figures_of_all_are_summed_and_those_of_the_machine_stay() -> None:
    """What one does not know counts for nothing; the worst share of collections is told."""
    tasks = [
        WorkerResources(heap_bytes=5, heap_live_bytes=4, gc_share=0.6, python_processes=2),
        WorkerResources(heap_bytes=6, direct_bytes=1),
    ]
    assert together(OWN, tasks) == WorkerResources(
        heap_bytes=21,
        direct_bytes=1,
        gc_share=0.6,
        python_processes=2,
        checkpoint_free_bytes=7,
        loop_lag_ms=3,
    )


def test_what_nobody_knows_is_not_told() -> None:
    """A worker whose own Spark is away tells of its tasks'."""
    assert together(None, []) is None
    assert together(OWN, []) == OWN
    assert together(None, [OWN]) == WorkerResources(heap_bytes=10, gc_share=0.1, python_processes=0)
