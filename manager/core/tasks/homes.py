"""The names that sinks and checkpoints know a task by, where these are not its own (protocol §5, Transfers).

Transferred tasks are run by workers that know of homes only. Workers say so in their metadata (`homes`).
Those that do not would look for the checkpoint under the names that the task has now, find none there, and
write all its rows once more, under a fence of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Member

WHY_NOBODY = (
    "it was transferred, and a worker of an earlier version is in the group, which would begin it anew:"
    " bring all workers up to date"
)


def home_after(task: str, token: int) -> str:
    """By which name sinks know the next task called `task`: no task's name has a `~`, nor that ending.

    Args:
        task: one that has left its group.
        token: one that no task of that name has left with before.
    """
    return f"{task}~after~{token}"


def are_known(group: Group) -> bool:
    """Whether every member that may be given a task knows of homes: whoever leads decides about them all."""
    return all(member.homes for member in group.members.values() if not member.row.draining)


def has_home(group: Group, task: str) -> bool:
    """Whether sinks know `task` by other names than its own."""
    row = group.tasks.ownership.get(task)
    return row is not None and row.home is not None


def may_have(group: Group, member: Member, task: str) -> bool:
    """Whether `member` is granted `task` if it has been given it."""
    return member.homes or not has_home(group, task)


def is_due(group: Group, old: Member, new: Member) -> bool:
    """Whether there are tasks to be given to somebody now that `new` is there in the place of `old`."""
    if old.homes or not new.homes or not are_known(group):
        return False
    registry = group.tasks
    waiting = (task for task in registry.definitions if has_home(group, task))
    return any(task not in registry.assigned and registry.is_runnable(task) for task in waiting)
