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
from protocol.messages.tasks import Problem, TaskHome
from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from manager.core.commands import PutTask
    from manager.core.group import Group
    from manager.core.stored_rows import TransferRow


def check(group: Group, request: PutTask) -> None:
    """The task that is put is no other one than has left under its name, unless just that is meant.

    Raises:
        RefusedError: TASK_TRANSFERRED, which says where it is.
    """
    for problem in problems(group, [request]):
        raise RefusedError(ErrorCode.TASK_TRANSFERRED, problem.message)


def problems(group: Group, requests: Iterable[PutTask]) -> Iterator[Problem]:
    """Those of `requests`, by their place in a list, that may mean a task which has left."""
    gone = None
    for position, each in enumerate(requests):
        if each.conditions.if_none_match != ANY and has_left(group, each.task):
            gone = _gone(group) if gone is None else gone
            yield Problem(f"tasks[{position}]", _where(group, each.task, gone.get(each.task)))


def has_left(group: Group, task: str) -> bool:
    """Whether the last task called so has gone to another group, and nobody has had one of the name since."""
    row = group.tasks.ownership.get(task)
    if row is None or row.home is None or task in group.tasks.definitions:
        return False
    return row.home == TaskHome(group.name, home_after(task, row.token))


def _gone(group: Group) -> Mapping[str, TransferRow]:
    """By name, what is remembered of how tasks left last: of the latest transfers only."""
    left = (row for row in group.transfers.rows() if row.leaves and row.step is TransferStep.DONE)
    return {row.task: row for row in sorted(left, key=lambda row: row.changed_at_ms)}


def _where(group: Group, task: str, gone: TransferRow | None) -> str:
    place = "another group" if gone is None else f"group {gone.peer_group} as {gone.peer_task}"
    return (
        f"task {task} of group {group.name} has gone to {place}: transfer it back, or leave it out here;"
        " `tasks create` makes another one of that name, which begins at the beginning"
    )
