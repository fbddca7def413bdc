"""What each kind of alarm of workers looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core.alarms.facts import CLEAR, UNKNOWN, Reading
from protocol.alarm_kinds import AlarmKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.alarms.facts import WorkerFacts
    from manager.core.alarms.seen import WorkerSeen
    from protocol.messages.alarms import AlarmRule

    Condition = Callable[[AlarmRule, WorkerFacts, WorkerSeen, int], Reading]
    """Gets the moment on the monotonic clock in milliseconds."""


def read(rule: AlarmRule, facts: WorkerFacts, seen: WorkerSeen, now: int) -> Reading:
    """What the rule's condition looks at."""
    return CONDITIONS[rule.kind](rule, facts, seen, now)


def _overloaded(_: AlarmRule, facts: WorkerFacts, __: WorkerSeen, ___: int) -> Reading:
    if not facts.tasks:
        return CLEAR
    return UNKNOWN if facts.load is None else Reading(facts.load / facts.capacity)


def _heap(_: AlarmRule, facts: WorkerFacts, __: WorkerSeen, ___: int) -> Reading:
    told = facts.resources
    if told is None or not told.heap_max_bytes or told.heap_after_gc_bytes is None:
        return UNKNOWN
    return Reading(100 * told.heap_after_gc_bytes / told.heap_max_bytes)


def _checkpoint_growing(rule: AlarmRule, facts: WorkerFacts, seen: WorkerSeen, now: int) -> Reading:
    window = seen.window(rule.kind.value, rule.window_ms)
    taken = facts.resources.checkpoint_bytes if facts.resources is not None else None
    if taken is not None:
        window.take(taken, now, rule.window_ms)
    return Reading(window.gained(), at_least=not window.is_whole(now, rule.window_ms))


CONDITIONS: Final[dict[AlarmKind, Condition]] = {
    AlarmKind.CHECKPOINT_GROWING: _checkpoint_growing,
    AlarmKind.WORKER_OVERLOADED: _overloaded,
    AlarmKind.WORKER_HEAP: _heap,
}
