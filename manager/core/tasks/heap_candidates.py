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
    from manager.core.group import Group


LEAST_WORKERS: Final = 2


def to_be_seen_alone(group: Group, now: int) -> str | None:
    """The first of them by name; None if there is none, or no worker to spare.

    Args:
        group: with what was seen of its heaps.
        now: the time, in milliseconds of the monotonic clock.
    """
    undecided = group.tasks.heap.left_undecided(now)
    if not undecided or sum(not each.row.draining for each in group.members.values()) < LEAST_WORKERS:
        return None
    return next((task for task in sorted(undecided) if _may_be_parted(group, task)), None)


def waits_for_that(group: Group) -> bool:
    """Whether it got no worker because it was to have one to itself; then it is not parted any more."""
    registry = group.tasks
    apart = registry.heap.apart
    if apart is None or group.state is not GroupState.STABLE or apart in registry.assigned:
        return False
    registry.heap.not_parted.add(apart)
    registry.heap.apart = None
    return True


def _may_be_parted(group: Group, task: str) -> bool:
    registry = group.tasks
    if task in registry.heap.not_parted or not registry.is_runnable(task):
        return False
    limit = heap_limit_in(registry.definitions[task].definition)
    return limit is not None and limit.action != "warn"
