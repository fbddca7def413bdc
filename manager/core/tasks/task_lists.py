"""Several tasks at once: one turn, and so one transaction, of which all comes true or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks
from manager.core.tasks import definitions, departed
from protocol.errors import ErrorCode, RefusedError
from protocol.etags import etag_of
from protocol.messages.tasks import Problem, PutTasksResponse, TaskPut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.commands import PutTask, PutTasks
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from protocol.messages.tasks import PutResult


def put_all(turn: Turn, request: PutTasks, parked: Parked) -> None:
    """Add, replace and forget; nothing is begun before every condition is met."""
    group = turn.group
    checks.not_dead(group)
    checks.list_meets(request.conditions, group)
    if problems := tuple(_unmet(group, request)):
        raise refused_list(ErrorCode.PRECONDITION_FAILED, problems)
    if problems := tuple(departed.problems(group, request.tasks)):
        raise refused_list(ErrorCode.TASK_TRANSFERRED, problems)
    _check_moving(group, request)
    results = [
        *(_put(turn, each, validate_only=request.validate_only) for each in request.tasks),
        *(_delete(turn, task, validate_only=request.validate_only) for task in request.delete),
    ]
    answer = PutTasksResponse(
        tasks=tuple(results), tasks_revision=group.header.tasks_revision, etag=checks.list_tag(group)
    )
    turn.answer(parked, answer)


PROBLEMS_IN_WORDS = 10
"""How many are in the message of a refusal; all are in its `problems`."""


def refused_list(code: ErrorCode, problems: tuple[Problem, ...]) -> RefusedError:
    """The refusal of a list, of tasks or of rules, each problem with its path in the body."""
    told = [f"{problem.path}: {problem.message}" for problem in problems[:PROBLEMS_IN_WORDS]]
    rest = len(problems) - len(told)
    return RefusedError(code, "; ".join([*told, f"and {rest} more"] if rest else told), problems=problems)


def _unmet(group: Group, request: PutTasks) -> Iterator[Problem]:
    for position, each in enumerate(request.tasks):
        try:
            checks.meets(each.conditions, group.tasks.definitions.get(each.task))
        except RefusedError as refusal:
            yield Problem(f"tasks[{position}]", refusal.failure.message)


def _check_moving(group: Group, request: PutTasks) -> None:
    """What would be changed is under no transfer; there are few of those, as a rule none."""
    if not group.transfers.moving:
        return
    for each in request.tasks:
        before, wanted = definitions.plan(group, each)
        if wanted != before:
            checks.not_moving(group, each.task)
    for task in request.delete:
        checks.not_moving(group, task)


def _put(turn: Turn, request: PutTask, *, validate_only: bool) -> TaskPut:
    before, row = definitions.plan(turn.group, request)
    result: PutResult = "created" if before is None else "unchanged" if row == before else "changed"
    if not validate_only:
        row = definitions.upsert(turn, before, row)
    etag = etag_of(row.definition, row.target.value)
    return TaskPut(task=row.task, result=result, etag=etag, definition_version=row.definition_version)


def _delete(turn: Turn, task: str, *, validate_only: bool) -> TaskPut:
    """One that is not there is no error: the request may have been carried out before, its answer lost."""
    row = turn.group.tasks.definitions.get(task)
    if row is not None and not validate_only:
        definitions.remove(turn, row)
    result: PutResult = "unchanged" if row is None else "deleted"
    return TaskPut(task=task, result=result, etag=None, definition_version=None)
