"""Queries of a task that has come from another group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.messages.quarantine import QuarantineRequest
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from protocol.names import MAX_NAME_LENGTH
from worker.query_engine import QueryError


class Mover:
    """Starts a task in its group, and as it has come to another one."""

    def __init__(self, start: Any, spec: Any, engine: Any, what: dict[str, Any]) -> None:
        self._start, self._spec, self._engine, self._what = start, spec, engine, what

    def redefine(self, **more: Any) -> None:
        """Whatever is started from now on has this in its definition."""
        self._what |= more

    async def here(self) -> Any:
        """The task's query in the group that it was created in."""
        return await self._start(token=1, **self._what)

    def there(self, home: TaskHome, known: Reached | None = None) -> Any:
        """What another group runs, under another name and a higher token."""
        spec = self._spec("elsewhere", 2, **self._what)
        return replace(spec, group="other", home=home, reached=known)

    async def begin(self, spec: Any) -> Any:
        """Run that."""
        return await self._engine.start(spec)

    async def settle(self, spec: Any) -> None:
        """Raise the fence for that."""
        await self._engine.settle(spec)


@pytest.fixture
def mover(start: Any, spec: Any, engine: Any, flights: Any, database: Any) -> Mover:
    return Mover(start, spec, engine, {"source": flights.source, "sink": database.sink()})


async def test_it_goes_on_where_it_was_under_its_old_names(
    mover: Mover, flights: Any, database: Any, catch_up: Any
) -> None:
    """Another group, another name: the same checkpoint and fence row, no row lost, none twice."""
    flights.add(files=2)
    first = await mover.here()
    await catch_up(first)
    await first.stop(5)
    flights.add()
    second = await mover.begin(mover.there(TaskHome(first.spec.group, "t"), reached(first)))
    await catch_up(second)
    await second.stop(5)
    assert (second.committed, second.checkpoint) == (1, first.checkpoint)
    assert database.ids() == flights.ids
    rows = database.query("SELECT group_id, task, token FROM sparkherd_fence")
    assert rows == [(first.spec.group, "t", 2)]


async def test_the_group_that_gave_it_away_can_write_no_more(
    mover: Mover, flights: Any, database: Any, catch_up: Any
) -> None:
    """A zombie of it there is refused as any former owner is."""
    flights.add()
    zombie = await mover.here()
    await catch_up(zombie)
    await mover.settle(mover.there(TaskHome(zombie.spec.group, "t")))
    flights.add()
    ended = await zombie.ended()
    assert ended.fenced
    assert database.ids() == flights.ids[:10]


async def test_a_worker_that_does_not_see_its_checkpoint_does_not_begin_anew(
    mover: Mover, flights: Any, database: Any, catch_up: Any
) -> None:
    """The task had come further than an empty folder says: the other group's root is another one."""
    flights.add(files=2)
    first = await mover.here()
    await catch_up(first)
    await first.stop(5)
    with pytest.raises(QueryError, match="give all workers of the group one --checkpoint-root"):
        await mover.begin(mover.there(TaskHome("lost", "t"), reached(first)))
    assert database.ids() == flights.ids


async def test_a_later_task_of_the_longest_name_has_a_checkpoint(
    mover: Mover, flights: Any, database: Any, catch_up: Any
) -> None:
    """What no folder can be called is not: it runs, also after a reset, with a fence row of its own."""
    flights.add()
    name = "t" * MAX_NAME_LENGTH + "~after~1795346403"
    first = mover.there(TaskHome("g", name))
    query = await mover.begin(first)
    await catch_up(query)
    await query.stop(5)
    again = replace(first, token=1795346405, reset=TaskReset(1795346404, "earliest"))
    query = await mover.begin(again)
    await catch_up(query)
    await query.stop(5)
    assert database.ids() == sorted(flights.ids * 2)
    assert database.query("SELECT task, token FROM sparkherd_fence") == [(name, 1795346405)]


async def test_rows_that_it_has_put_aside_are_its_rows_there(
    mover: Mover, flights: Any, database: Any, catch_up: Any, engine: Any
) -> None:
    """The other group finds them under its own name for the task, and plays them again, once."""
    mover.redefine(expect=[expectation("id < 5")])
    flights.add()
    first = await mover.here()
    await catch_up(first)
    await first.stop(5)
    assert database.ids() == flights.ids[:5]
    mover.redefine(expect=[expectation("id < 500")])
    moved = mover.there(TaskHome(first.spec.group, "t"), reached(first))
    later = replace(moved, group=first.spec.group, task="t", home=TaskHome(first.spec.group, "t~after~1"))
    for spec, rows in ((moved, 5), (later, 0)):
        assert (await engine.quarantine(spec, QuarantineRequest(action="list"))).total == rows
    known_as = database.query("SELECT DISTINCT group_id, task FROM sparkherd_quarantine")
    assert known_as == [(first.spec.group, "t")]
    for played in (5, 0):
        assert (await engine.quarantine(moved, QuarantineRequest(action="replay"))).replayed == played
    assert database.ids() == flights.ids


def expectation(where: str) -> dict[str, str]:
    """Whatever does not meet it is put aside."""
    return {"name": "small", "where": where, "on_violation": "quarantine"}


def reached(query: Any) -> Reached:
    """What the first group knows of how far it had come."""
    return Reached(query.progress().batch_id, str(query.checkpoint), "anna")
