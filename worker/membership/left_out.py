"""Why tasks are nobody's, as the leader tells it: within bounds, and never in the way of a rebalance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from assignors.unassigned import why_unassigned
from telemetry.cause_ids import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from assignors.base import Assignment, Member, Task

log = structlog.get_logger(__name__)

MOST_BYTES: Final = 1 << 20
"""Of names and reasons in one assignment: a manager takes eight times as much, and keeps it."""
MOST_LOGGED: Final = 100
"""Tasks that have a line of their own in the log; the others are counted."""


def why_left_out(
    assignment: Assignment,
    members: Sequence[Member],
    tasks: Sequence[Task],
    suspects: Collection[str] = frozenset(),
) -> dict[str, str]:
    """The tasks that nobody is given, by name, each with the reason; as many as there is room for.

    Nothing that goes wrong here keeps the group from its assignment: then no reasons are told.
    """
    try:
        left_out = _why(assignment, members, tasks, suspects)
    except Exception:
        log.exception("bug: why tasks stay unassigned is not known", cause_id=new_cause_id())
        return {}
    _log(left_out)
    return _within_bounds(left_out)


def _why(
    assignment: Assignment, members: Sequence[Member], tasks: Sequence[Task], suspects: Collection[str]
) -> dict[str, str]:
    if not members:
        return {task.name: "every worker of the group is being drained" for task in tasks}
    return why_unassigned(assignment, members, tasks, suspects)


def _log(left_out: Mapping[str, str]) -> None:
    for task, why in tuple(left_out.items())[:MOST_LOGGED]:
        log.warning("task stays unassigned", task=task, why=why)
    if (rest := len(left_out) - MOST_LOGGED) > 0:
        log.warning("more tasks stay unassigned", tasks=rest)


def _within_bounds(left_out: Mapping[str, str]) -> dict[str, str]:
    told: dict[str, str] = {}
    room = MOST_BYTES
    for task, why in left_out.items():
        room -= len(task) + len(why.encode())
        if room < 0:
            break
        told[task] = why
    return told
