"""States in the order in which they want attention, and in people's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

WORST_FIRST: Final = tuple(
    state.value
    for state in (
        TaskState.FAILED,
        TaskState.UNASSIGNED,
        TaskState.RESTARTING,
        TaskState.STARTING,
        TaskState.RUNNING,
        TaskState.PAUSED,
        TaskState.STOPPED,
        TaskState.COMPLETED,
    )
)

MEANINGS: Final = {
    "Empty": "no worker is in the group",
    "PreparingRebalance": "waiting for all workers to join",
    "AwaitingSync": "the leader decides who runs what",
    "Stable": "every worker has its tasks",
    "Dead": "the group is being deleted",
    "UNASSIGNED": "nobody runs it",
    "STARTING": "its owner starts the query",
    "RUNNING": "the query runs",
    "PAUSED": "kept by its owner, no query runs",
    "STOPPED": "not to run, and nobody has it",
    "RESTARTING": "it failed, and its owner tries again soon",
    "FAILED": "its owner has given up on it",
    "COMPLETED": "a bounded query that came to its end",
}


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many are in a state."""

    state: str
    count: int


def in_order(counts: Mapping[str, int]) -> tuple[StateCount, ...]:
    """The states that occur, the worst first; any that is not known at the end."""
    known = [state for state in WORST_FIRST if counts.get(state)]
    others = sorted(state for state, count in counts.items() if count and state not in WORST_FIRST)
    return tuple(StateCount(state, counts[state]) for state in (*known, *others))
