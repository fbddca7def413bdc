"""What a group comes to, in few figures: how its tasks fare, and which of them want looking at."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.tasks.responses import why_unassigned
from protocol.states import UNREADABLE, GroupState, TaskState

if TYPE_CHECKING:
    from manager.core.group import Group

TROUBLED: Final = (TaskState.FAILED, TaskState.UNASSIGNED, TaskState.RESTARTING)
"""States of a task that a person should look at, worst first."""
TROUBLES_TOLD: Final = 20
"""Of a group; there may be thousands, for one reason."""


class Trouble(msgspec.Struct, frozen=True):
    """A task that does not run though it should; the first line of why, if that is known."""

    task: str
    state: str
    cause: str | None


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """A group in figures; `tasks` counts by state, `fault` is why there are none: it cannot be read."""

    group: str
    state: str
    generation_id: int
    workers: int
    draining: int
    tasks: dict[str, int]
    troubles: tuple[Trouble, ...]
    fault: str | None = None


def unreadable(name: str, fault: str) -> Tally:
    """A group whose rows make no sense."""
    return Tally(
        group=name,
        state=UNREADABLE,
        generation_id=-1,
        workers=0,
        draining=0,
        tasks={},
        troubles=(),
        fault=fault,
    )


def tally(group: Group) -> Tally:
    """The group as it is."""
    states = {task: group.tasks.ownership_of(group.name, task).state for task in group.tasks.definitions}
    counts = Counter(state.value for state in states.values())
    return Tally(
        group=group.name,
        state=group.state.value,
        generation_id=group.generation,
        workers=len(group.members),
        draining=sum(member.row.draining for member in group.members.values()),
        tasks=dict(counts),
        troubles=_troubles(group, states),
    )


def _troubles(group: Group, states: dict[str, TaskState]) -> tuple[Trouble, ...]:
    troubled = [task for task, state in states.items() if state in TROUBLED]
    worst = sorted(troubled, key=lambda task: (TROUBLED.index(states[task]), task))[:TROUBLES_TOLD]
    return tuple(Trouble(task, states[task].value, _why(group, task)) for task in worst)


def _why(group: Group, task: str) -> str | None:
    registry = group.tasks
    cause = registry.ownership_of(group.name, task).cause
    cause = cause or why_unassigned(group, registry.definitions[task], registry.assigned.get(task))
    return first_line(cause)


def first_line(cause: str | None) -> str | None:
    """What a cause comes to, without its trace."""
    return cause.partition("\n")[0] if cause else None


def is_rebalancing(state: str) -> bool:
    """Whether a group in that state is between two assignments."""
    return state in {GroupState.PREPARING_REBALANCE.value, GroupState.AWAITING_SYNC.value}
