"""Why nobody is given a task, in one line that says what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.eligibility import Eligibility

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from assignors.base import Assignment, Member, Task

SUSPECTS_FULL = (
    "it may have killed its last workers, and the worker that is kept for such tasks has as many as its"
    " --max-tasks allows; they follow one after another"
)
ALL_FULL = (
    "every worker that may run it has as many tasks as its --max-tasks allows: start another worker, or raise"
    " --max-tasks of one"
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
    full = {at for at, member in enumerate(members) if _is_full(member, assignment)}
    return {task.name: _why(task, eligibility, full, suspects) for task in missing}


def _why(task: Task, eligibility: Eligibility, full: Collection[int], suspects: Collection[str]) -> str:
    if nobody := eligibility.why_nobody(task):
        return nobody
    if all(at in full for at in eligibility.of(task)):
        return ALL_FULL
    return SUSPECTS_FULL if full and task.name in suspects else "the assignor left it out"


def _is_full(member: Member, assignment: Mapping[str, Sequence[str]]) -> bool:
    return member.max_tasks is not None and len(assignment.get(member.member_id, ())) >= member.max_tasks
