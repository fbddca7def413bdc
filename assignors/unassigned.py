"""Why nobody is given a task, in one line that says what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.eligibility import Eligibility

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from assignors.base import Assignment, Member, Task

NO_ROOM = (
    "no worker that may run it has room: each has as many tasks as its --max-tasks allows, or is kept for"
    " tasks that are to be alone; start another worker, or raise --max-tasks"
)
SUSPECTS_FULL = (
    "it may have killed its last workers, and the worker that is kept for such tasks has as many as its"
    " --max-tasks allows; they follow one after another"
)
NONE_TO_SPARE = (
    "it is exclusive, and there is no worker that may run it and that the other tasks can do without: start"
    " another one, or take exclusive out of its definition"
)


def why_unassigned(
    assignment: Assignment,
    members: Sequence[Member],
    tasks: Sequence[Task],
    suspects: Collection[str] = frozenset(),
) -> dict[str, str]:
    """The tasks that nobody is given, each with the reason for a person to read.

    Args:
        assignment: who is given what.
        members: all who take part.
        tasks: all that can run.
        suspects: those of them that are kept on one member, away from the others.
    """
    given = {name for names in assignment.values() for name in names}
    missing = [task for task in tasks if task.name not in given]
    if not missing:
        return {}
    eligibility = Eligibility(members)
    alone = {task.name for task in tasks if task.exclusive}.union(suspects)
    closed = {at for at, member in enumerate(members) if _is_closed(member, assignment, alone)}
    return {task.name: _why(task, eligibility, closed, suspects) for task in missing}


def _why(task: Task, eligibility: Eligibility, closed: Collection[int], suspects: Collection[str]) -> str:
    if nobody := eligibility.why_nobody(task):
        return nobody
    if task.exclusive:
        return NONE_TO_SPARE
    if all(at in closed for at in eligibility.of(task)):
        return NO_ROOM
    return SUSPECTS_FULL if closed and task.name in suspects else "the assignor left it out"


def _is_closed(member: Member, assignment: Mapping[str, Sequence[str]], alone: Collection[str]) -> bool:
    """Whether it is given as many tasks as it may have, or one that is to be alone."""
    names = assignment.get(member.member_id, ())
    is_full = member.max_tasks is not None and len(names) >= member.max_tasks
    return is_full or any(name in alone for name in names)
