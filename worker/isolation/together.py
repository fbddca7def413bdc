"""What a worker takes of its machine whose tasks have a Spark each: a rule without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from protocol.messages.resources import WorkerResources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SUMMED: Final = (
    *("heap_bytes", "heap_max_bytes", "heap_after_gc_bytes", "gc_ms", "direct_bytes"),
    *("python_processes", "python_bytes"),
)


def together(own: WorkerResources | None, tasks: Sequence[WorkerResources]) -> WorkerResources | None:
    """All of them as one: sums, and of the share that collections of garbage take the largest.

    They have no one heap, of which could be told what is kept.

    Args:
        own: of the Spark that runs no queries, with what is the whole machine's; None if it is not up.
        tasks: of each task's.
    """
    if own is None and not tasks:
        return None
    every = [each for each in (own, *tasks) if each is not None]
    summed = {name: _sum(getattr(each, name) for each in every) for name in _SUMMED}
    shares = [each.gc_share for each in every if each.gc_share is not None]
    return msgspec.structs.replace(
        own or WorkerResources(), **summed, gc_share=max(shares, default=None), heap_live_bytes=None
    )


def _sum(figures: Iterable[int | None]) -> int | None:
    """Of those that are known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
