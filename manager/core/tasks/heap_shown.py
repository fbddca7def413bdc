"""Heaps that grow, and tasks that may be why, as they are shown (protocol §5, Quarantine)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.heap import CANDIDATES_SHOWN, HeapRise, HeapSuspicion

if TYPE_CHECKING:
    from manager.core.heap.suspects import Suspicion
    from manager.core.turn import Turn

MIB = 2**20


def of_task(turn: Turn, task: str) -> HeapSuspicion | None:
    """What the task is suspected of."""
    suspicion = turn.group.tasks.heap.suspicions.get(task)
    if suspicion is None:
        return None
    rise = suspicion.rise
    return HeapSuspicion(
        member_id=suspicion.stretch.member_id,
        since_ms=_wall(turn, rise.since_ms),
        over_ms=rise.over_ms,
        from_bytes=rise.from_bytes,
        to_bytes=rise.to_bytes,
        left_bytes=suspicion.stretch.left_after(suspicion.holder),
        ground=suspicion.ground,
        said=said(suspicion),
    )


def of_member(turn: Turn, member_id: str) -> HeapRise | None:
    """A rise of its heap that is laid to no single task."""
    found = turn.group.tasks.heap.unresolved_of(member_id)
    if found is None:
        return None
    rise, candidates = found.rise, found.tasks
    return HeapRise(
        since_ms=_wall(turn, rise.since_ms),
        over_ms=rise.over_ms,
        from_bytes=rise.from_bytes,
        to_bytes=rise.to_bytes,
        candidates=len(candidates),
        tasks=candidates[:CANDIDATES_SHOWN],
    )


def said(suspicion: Suspicion) -> str:
    """A suspicion, for people, with its figures."""
    rise, stretch = suspicion.rise, suspicion.stretch
    grown = f"{_mib(rise.from_bytes)} to {_mib(rise.to_bytes)} MiB in {rise.over_ms / 60_000:.0f} min"
    head = f"the heap of {stretch.member_id} grew from {grown} while this task ran there, "
    grounds = {
        "alone": "and nothing else did",
        "state": f"and its state by {_mib(stretch.state_growth(suspicion.holder.task, rise))} MiB",
        "others_cleared": "and no heap did where the others ran without it",
    }
    left = stretch.left_after(suspicion.holder)
    tail = "" if left is None else f"; when it was gone, {_mib(left)} MiB were left"
    return f"{head}{grounds[suspicion.ground]}{tail}"


def _wall(turn: Turn, mono_ms: int) -> int:
    """A moment of the monotonic clock, in milliseconds since 1970."""
    return turn.instant.wall - (turn.now - mono_ms)


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f}"
