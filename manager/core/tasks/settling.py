"""Tasks that somebody before may still write for: who can put an end to that, and whose word counts.

A task that is to run is settled by its query, which raises the fence in the sink before it reads anything.
One that is STOPPED has none, so it is given to a worker that raises the fence for nothing else. Workers say
in their metadata that they know how (`settles`): those that do not would say STOPPED and have told no sink
(protocol §5, A stopped task is settled).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.stored_rows import OwnershipRow
    from protocol.messages.ownership import TaskReport

AT_ONCE = 8
"""Tasks that a member is given to settle at the same time: the patience with each begins with its grant, and
a worker takes no more of them up at once (`worker.spark.starts`). The others are pending until one is done.
"""

HAS_RUN = frozenset({TaskState.RUNNING, TaskState.COMPLETED})
"""States that only a query brings about, and with it the fence."""


def unable(group: Group) -> Iterator[str]:
    """The members that may be given tasks and cannot settle one; while there are any, none is offered.

    Whoever leads decides about all that is offered, and may be of a version that knows nothing of this.
    """
    return (m.id for m in group.members.values() if not m.row.draining and not m.settles)


def is_possible(group: Group) -> bool:
    """Whether every member that may be given a task to settle would."""
    return next(unable(group), None) is None


def is_due(group: Group) -> bool:
    """Whether a task is to be settled that nobody has been given to do it."""
    registry = group.tasks
    waiting = (task for task in registry.to_stop if registry.is_runnable(task))
    return any(task not in registry.assigned for task in waiting) and is_possible(group)


def under_way(group: Group, member: Member) -> set[str]:
    """The stopped tasks that `member` has yet to be done with, as the patience with it has begun."""
    registry = group.tasks
    return {
        task
        for task in registry.taken_since
        if registry.owner_of(task) == member.id and registry.is_to_stop(task)
    }


def may_have(group: Group, member: Member, task: str) -> bool:
    """Whether `member` is granted `task` if it has been given it."""
    registry = group.tasks
    return registry.is_runnable(task) and (member.settles or not registry.is_to_stop(task))


def is_left_open(row: OwnershipRow, member: Member, entry: TaskReport) -> bool:
    """Whether the task still is to be settled after a report of its owner, `member`; with a cause it is."""
    if not row.unsettled or entry.cause is not None:
        return row.unsettled
    return entry.state not in HAS_RUN and not (entry.state is TaskState.STOPPED and member.settles)
