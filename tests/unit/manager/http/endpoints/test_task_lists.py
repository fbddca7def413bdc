from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from definition.reading import MOST_PROBLEMS
from manager.http.definition_bodies import AT_ONCE
from manager.http.endpoints.task_lists import MOST_TASKS, read_list
from protocol.errors import RefusedError
from protocol.messages.tasks import Problem, PutTasksRequest, TaskToPut

GOOD = {"source": {"format": "rate"}, "sink": {"format": "noop"}}


def request(count: int, definition: dict[str, Any], delete: int = 0) -> PutTasksRequest:
    """So many tasks of one definition, and so many to forget."""
    document = msgspec.Raw(json.dumps(definition).encode())
    return PutTasksRequest(
        tasks=tuple(TaskToPut(task=f"t{n}", definition=document) for n in range(count)),
        delete=tuple(f"d{n}" for n in range(delete)),
    )


async def test_one_request_names_so_many_tasks_at_most() -> None:
    """It is one turn of the event loop; those to forget count, too."""
    with pytest.raises(RefusedError, match=f"20001 tasks are named, one request takes {MOST_TASKS} at most"):
        await read_list(request(1, GOOD, delete=MOST_TASKS))


async def test_the_problems_of_a_list_come_to_an_end() -> None:
    """The first ones are told, and that there are more; what comes after them is not even read."""
    bad = {**GOOD, **{f"wrong{n}": 1 for n in range(30)}}
    with pytest.raises(RefusedError) as refused:
        await read_list(request(AT_ONCE, bad))
    problems = refused.value.failure.fields["problems"]
    assert len(problems) == MOST_PROBLEMS + 1
    assert problems[-1] == Problem("tasks", f"have more problems than these {MOST_PROBLEMS}")
