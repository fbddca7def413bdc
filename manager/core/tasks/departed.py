"""Names of tasks that have gone to another group (protocol §5, Transfers).

A list of tasks may still name one that has left. Applied again, it would make another task of that name,
which begins at the beginning and writes into the same sink, under a fence of its own, what the one that has
left has written already. So another one is made by those requests only that cannot mean that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.tasks.homes import home_after
from protocol.errors import ErrorCode, RefusedError
from protocol.etags import ANY
from protocol.messages.tasks import TaskHome
from protocol.states import TransferStep

if TYPE_CHECKING:
    from manager.core.commands import PutTask
    from manager.core.group import Group


def check(group: Group, request: PutTask) -> None:
    """The task that is put is no other one than has left under its name, unless just that is meant.

    Raises:
        RefusedError: TASK_TRANSFERRED, which says where it is.
    """
    if request.conditions.if_none_match != ANY and has_left(group, request.task):
        raise RefusedError(ErrorCode.TASK_TRANSFERRED, _where(group, request.task))


def has_left(group: Group, task: str) -> bool:
    """Whether the last task called so has gone to another group, and nobody has had one of the name since."""
    row = group.tasks.ownership.get(task)
    if row is None or row.home is None or task in group.tasks.definitions:
        return False
    return row.home == TaskHome(group.name, home_after(task, row.token))


def _where(group: Group, task: str) -> str:
    gone = [row for row in group.transfers.rows() if row.leaves and row.task == task]
    last = max(gone, key=lambda row: row.changed_at_ms, default=None)
    known = last is not None and last.step is TransferStep.DONE
    place = f"group {last.peer_group} as {last.peer_task}" if last is not None and known else "another group"
    return (
        f"task {task} of group {group.name} has gone to {place}: transfer it back, or leave it out here;"
        " `tasks create` makes another one of that name, which begins at the beginning"
    )
