"""A request about several tasks, read as a whole: it is all in order, or every problem is told."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from manager.core.commands import NewDefinition, PutTask, PutTasks
from manager.core.task_lists import refused_list
from manager.http.definitions import read_definitions
from protocol.errors import ErrorCode, RefusedError
from protocol.etags import Conditions
from protocol.messages.tasks import Problem
from protocol.reading import MOST_PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.messages.tasks import PutTasksRequest, TaskToPut


MOST_TASKS = 20_000
"""Named in one request: it is one turn of the event loop, a second long for so many; a lease has three."""


async def read_list(body: PutTasksRequest) -> PutTasks:
    """The command that `body` stands for.

    Raises:
        RefusedError: INVALID_REQUEST with the first `MOST_PROBLEMS` problems, each with its path in the body.
    """
    named = len(body.tasks) + len(body.delete)
    if named > MOST_TASKS:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"tasks, delete: {named} tasks are named, one request takes {MOST_TASKS} at most",
        )
    read = await read_definitions([each.definition for each in body.tasks])
    problems = tuple(islice(chain(_of_names(body), _of_definitions(read)), MOST_PROBLEMS + 1))
    if problems:
        raise refused_list(ErrorCode.INVALID_REQUEST, _first(problems))
    puts = [
        _command(each, definition)
        for each, definition in zip(body.tasks, read, strict=True)
        if isinstance(definition, NewDefinition)
    ]
    return PutTasks(tasks=tuple(puts), delete=body.delete, validate_only=body.validate_only)


def _first(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    if len(problems) <= MOST_PROBLEMS:
        return problems
    return (*problems[:MOST_PROBLEMS], Problem("tasks", f"have more problems than these {MOST_PROBLEMS}"))


def _command(each: TaskToPut, definition: NewDefinition) -> PutTask:
    conditions = Conditions(if_match=each.if_match, if_none_match=each.if_none_match)
    return PutTask(task=each.task, definition=definition, target=each.target, conditions=conditions)


def _of_names(body: PutTasksRequest) -> Iterator[Problem]:
    """A task can be asked for once only: nobody could say which of two is meant."""
    named: set[str] = set()
    for place, name in [
        *((f"tasks[{position}].task", each.task) for position, each in enumerate(body.tasks)),
        *((f"delete[{position}]", name) for position, name in enumerate(body.delete)),
    ]:
        if name in named:
            yield Problem(place, f"{name} is named already")
        named.add(name)


def _of_definitions(read: Sequence[NewDefinition | tuple[Problem, ...]]) -> Iterator[Problem]:
    for position, problems in enumerate(read):
        for each in problems if isinstance(problems, tuple) else ():
            path = ".".join(filter(None, (f"tasks[{position}].definition", each.path)))
            yield Problem(path, each.message)
