"""Which task is to be seen alone, when the heap of a worker rose and nobody knows with which of its tasks.

As long as the same tasks run together, nothing tells them apart. So once a worker is gone in that way, those
of them whose definition wants something done about it get a worker to themselves for a while, one after the
other: alone, a task fills its heap, or is cleared. It is a placement; nobody else has no worker for it
(`assignors.exclusive`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from definition.limits import heap_limit_in
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Container

    from manager.core.group import Group


LEAST_WORKERS: Final = 2


def to_be_seen_alone(group: Group, offered: Container[str], now: int) -> str | None:
    """The first of them by name; None if there is none, or no worker to spare.

    Args:
        group: with what was seen of its heaps.
        offered: the tasks to be placed.
        now: the time, in milliseconds of the monotonic clock.
    """
    heap = group.tasks.heap
    if heap.had_no_room == group.members.keys() or _workers(group) < LEAST_WORKERS:
        return None
    undecided = sorted(task for task in heap.left_undecided(now) if task in offered)
    return next((task for task in undecided if _acts(group, task)), None)


def waits_for_that(group: Group) -> bool:
    """Whether somebody got no worker because it was to have one to itself.

    Then nobody is parted as long as the group has the same members: the next one would wait as well.
    """
    registry, heap = group.tasks, group.tasks.heap
    if heap.apart is None or group.state is not GroupState.STABLE:
        return False
    if heap.apart in registry.assigned or not registry.is_runnable(heap.apart):
        return False
    heap.apart, heap.had_no_room = None, frozenset(group.members)
    return True


def _workers(group: Group) -> int:
    return sum(not each.row.draining for each in group.members.values())


def _acts(group: Group, task: str) -> bool:
    row = group.tasks.definitions.get(task)
    limit = heap_limit_in(row.definition) if row is not None else None
    return limit is not None and limit.action != "warn"
