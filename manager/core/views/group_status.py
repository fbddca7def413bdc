"""What a group comes to, in few figures: how its tasks fare, and which of them want looking at."""

from __future__ import annotations

from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.tasks.responses import why_unassigned
from manager.core.views.groups import summary
from protocol.states import UNREADABLE, GroupState, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from manager.core.group import Group
    from protocol.messages.groups import GroupSummary

TROUBLED: Final = (TaskState.FAILED, TaskState.UNASSIGNED, TaskState.RESTARTING)
"""States of a task that a person should look at, worst first."""
TROUBLES_TOLD: Final = 20
"""Of a group; there may be thousands, for one reason."""


class Trouble(msgspec.Struct, frozen=True):
    """A task that does not run though it should; the first line of why, if that is known."""

    task: str
    state: str
    cause: str | None


class GroupStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A group in figures; `tasks` counts by state. `fault` says why one has none: it cannot be read."""

    group: str
    state: str = UNREADABLE
    generation_id: int = -1
    workers: int = 0
    draining: int = 0
    tasks: dict[str, int] = {}
    troubles: tuple[Trouble, ...] = ()
    fault: str | None = None


def status(
    line: GroupSummary,
    counts: Mapping[str, int],
    draining: int,
    troubled: Mapping[str, str],
    cause_of: Callable[[str], str | None],
) -> GroupStatus:
    """A group in figures, wherever they come from: its memory, or its rows.

    Args:
        line: the group as lists show it.
        counts: its tasks by state.
        draining: how many of its members let go of their tasks.
        troubled: tasks in a state that is among `TROUBLED`, with that; the worst of them are enough.
        cause_of: why a task is in such a state.
    """
    worst = sorted(troubled, key=lambda task: (TROUBLED.index(TaskState(troubled[task])), task))
    return GroupStatus(
        group=line.group,
        state=line.state,
        generation_id=line.generation_id,
        workers=line.members,
        draining=draining,
        tasks=dict(counts),
        troubles=tuple(
            Trouble(task, troubled[task], headline(cause_of(task))) for task in worst[:TROUBLES_TOLD]
        ),
    )


def status_of(group: Group) -> GroupStatus:
    """A group in memory."""
    tally = group.tasks.tally
    return status(
        summary(group),
        tally.counts(),
        sum(member.row.draining for member in group.members.values()),
        {
            task: state.value
            for state in TROUBLED
            for task in nsmallest(TROUBLES_TOLD, tally.in_state(state.value))
        },
        partial(_cause_of, group),
    )


def _cause_of(group: Group, task: str) -> str | None:
    registry = group.tasks
    cause = registry.ownership_of(group.name, task).cause
    return cause or why_unassigned(group, registry.definitions[task], registry.assigned.get(task))


def headline(cause: str | None) -> str | None:
    """What a cause comes to, without its trace."""
    return cause.partition("\n")[0] if cause else None


def is_rebalancing(state: str) -> bool:
    """Whether a group in that state is between two assignments."""
    return state in {GroupState.PREPARING_REBALANCE.value, GroupState.AWAITING_SYNC.value}
