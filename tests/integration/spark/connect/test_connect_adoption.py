"""Queries that outlive their worker and are taken over as they run, on a real server."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.turns import eventually
from tests.integration.spark.test_spark_fencing import raise_fence
from worker.query_engine import QueryError
from worker.spark.connect import adoption
from worker.spark.connect.sessions import open_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKENS = "SELECT token FROM sparkherd_fence WHERE task = 't'"


@pytest.fixture
def plain(flights: Any, database: Any) -> dict[str, Any]:
    """A definition whose sink has a fence; a batch a file."""
    return {"source": flights.source, "sink": database.sink()}


@pytest.fixture
def written(flights: Any, database: Any) -> Any:
    """Waits until all rows that there are have been written, each once."""

    async def wait() -> None:
        await eventually(lambda: len(database.ids()) >= len(flights.ids))
        assert database.ids() == flights.ids

    return wait


@pytest.fixture
async def left(start: Any, flights: Any, plain: Any, written: Any) -> Any:
    """A query under token 1 that has done two batches; nobody asks for its end, as of a frozen worker's."""
    flights.add(files=2)
    query = await start(token=1, **plain)
    await written()
    await eventually(lambda: not query._gate.is_occupied)
    return query


def run_id(query: Any) -> str:
    """Spark's own id of one run of a query."""
    return str(query._handle.query.runId)


@asynccontextmanager
async def held(database: Any) -> AsyncIterator[None]:
    """Nobody else can write to the sink's database meanwhile."""
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def test_the_next_owner_has_the_query_as_it_runs(
    *, left: Any, start: Any, flights: Any, database: Any, plain: Any, written: Any
) -> None:
    """The same run of the same query goes on, under the next token: nothing was stopped or started."""
    owner = await start(token=2, **plain)
    assert run_id(owner) == run_id(left)
    assert database.query(TOKENS) == [(2,)]
    flights.add(files=3)
    await written()
    await eventually(lambda: owner.progress() is not None and owner.progress().batch_id == 4)
    assert owner.progress().metrics["total_rows"] == 30


async def test_a_batch_under_way_is_the_former_owner_s(
    *, left: Any, remote: Any, spec: Any, flights: Any, database: Any, plain: Any, written: Any
) -> None:
    """It is waited for, and not refused; the one after it is the new owner's."""
    steps: asyncio.Queue[str] = asyncio.Queue()
    async with held(database):
        flights.add(files=2)
        await eventually(lambda: left._gate.is_occupied)
        taking = asyncio.create_task(remote.start(spec("t", 2, **plain), steps.put_nowait))
        while await steps.get() != "the batch that is being done under the former owner":
            pass
        assert database.query(TOKENS) == [(1,)]
    owner = await taking
    assert run_id(owner) == run_id(left)
    await written()
    await owner.stop(60)
    assert await owner.ended() is None


async def test_a_former_owner_that_comes_back_does_no_harm(
    *, left: Any, start: Any, flights: Any, plain: Any, written: Any
) -> None:
    """It gives up its query, as it lost the task while it was frozen; the query goes on under its heir."""
    owner = await start(token=2, **plain)
    await left.abort("the task is lost")
    assert (await left.ended()).cause == "the task is lost"
    flights.add(files=2)
    await written()
    assert run_id(owner) == run_id(left)
    assert owner._handle.query.isActive


async def test_an_orphan_s_end_spares_its_heir(
    *, left: Any, start: Any, remote: Any, plain: Any, flights: Any, written: Any, spec: Any
) -> None:
    """Whoever has found it under its former token, and has been told that this one is stale."""
    [found] = await remote.noted(spec("t", 1, **plain).group)
    assert found.token == 1
    owner = await start(token=2, **plain)
    assert run_id(owner) == run_id(left)
    await remote.end_noted(found)
    [found] = await remote.noted(spec("t", 1, **plain).group)
    assert found.token == 2
    flights.add()
    await written()
    await remote.end_noted(found)
    assert "another worker has taken the task over" in (await owner.ended()).cause


async def test_an_older_heir_is_refused(
    *, left: Any, start: Any, plain: Any, flights: Any, written: Any, database: Any
) -> None:
    """It was frozen on its way to the query; the newer one keeps it."""
    owner = await start(token=3, **plain)
    with pytest.raises(QueryError, match="is fenced: its token 2 is older than 3") as refused:
        await start(token=2, **plain)
    assert refused.value.fenced
    flights.add()
    await written()
    assert run_id(owner) == run_id(left)
    assert database.query(TOKENS) == [(3,)]


async def test_what_is_wanted_otherwise_is_started_anew(
    *, left: Any, start: Any, plain: Any, flights: Any, written: Any
) -> None:
    """With another definition the query is another one."""
    owner = await start(token=2, **plain, trigger={"processing_time": "100 milliseconds"})
    assert run_id(owner) != run_id(left)
    flights.add()
    await written()
    assert "another worker has taken the task over" in (await left.ended()).cause


async def test_a_query_that_is_being_stopped_is_not_taken_over(
    *, left: Any, start: Any, plain: Any, flights: Any, written: Any
) -> None:
    """Its former owner has closed its gate, so that its next batch would be refused."""
    left._gate.close()
    await eventually(lambda: not left._gate.is_occupied)
    owner = await start(token=2, **plain)
    assert run_id(owner) != run_id(left)
    flights.add()
    await written()


async def test_a_batch_that_takes_too_long_is_done_anew(
    *,
    left: Any,
    remote: Any,
    spec: Any,
    flights: Any,
    database: Any,
    plain: Any,
    written: Any,
    monkeypatch: Any,
) -> None:
    """The new owner ends the query then, as it would have without all this."""
    monkeypatch.setattr(adoption, "PATIENCE_S", 0.0)
    async with held(database):
        flights.add(files=2)
        await eventually(lambda: left._gate.is_occupied)
        steps: asyncio.Queue[str] = asyncio.Queue()
        taking = asyncio.create_task(remote.start(spec("t", 2, **plain), steps.put_nowait))
        while not (await steps.get()).startswith("the fence in "):
            pass
    owner = await taking
    assert run_id(owner) != run_id(left)
    await written()
    await owner.stop(60)


async def test_a_worker_without_a_lease_takes_nothing_over(
    *, left: Any, start: Any, plain: Any, lease: Any, flights: Any, written: Any
) -> None:
    """The task may be somebody else's by now; the query stays its former owner's."""
    lease.holds = False
    with pytest.raises(QueryError, match="has lost its lease, so it may not take over"):
        await start(token=2, **plain)
    flights.add()
    await written()
    assert left._handle.query.isActive


async def test_a_fenced_heir_leaves_a_query_that_ends(
    *, left: Any, start: Any, plain: Any, flights: Any, database: Any
) -> None:
    """A newer owner on another server has raised the fence: the heir is refused, and so are its batches."""
    raise_fence(database, left, 5)
    with pytest.raises(QueryError, match="is fenced: its token 2 is older than 5"):
        await start(token=2, **plain)
    flights.add()
    assert "another worker has taken the task over" in (await left.ended()).cause
    assert len(database.ids()) == 20


async def test_the_session_of_a_taken_query_ends_with_its_heir(
    *, left: Any, start: Any, plain: Any, settings: Any
) -> None:
    """Nothing is left at the server when the heir has stopped it in order."""
    owner = await start(token=2, **plain)
    session = open_session(settings.remote, owner._session._session_id)
    await owner.stop(60)
    assert await owner.ended() is None
    del left

    def is_closed() -> bool:
        try:
            session.conf.get("spark.sql.session.timeZone")
        except Exception as error:  # noqa: BLE001 - whatever the class of it is in this PySpark
            return "SESSION_CLOSED" in str(error)
        return False

    await eventually(is_closed)


async def test_an_owner_that_leaves_its_query_sees_it_taken_over(
    *, left: Any, start: Any, flights: Any, database: Any, plain: Any, written: Any
) -> None:
    """The same run goes on for the next owner; for the one before it is over, and no batch was cut."""
    assert left.can_be_left
    leaving = asyncio.ensure_future(left.leave(60))
    flights.add(files=3)
    owner = await start(token=2, **plain)
    assert await leaving
    assert await left.ended() is None
    assert run_id(owner) == run_id(left)
    flights.add(files=3)
    await written()
    assert database.query(TOKENS) == [(2,)]
    await owner.stop(10)
    assert await owner.ended() is None


async def test_an_owner_that_nobody_follows_has_its_query_still(
    *, left: Any, flights: Any, written: Any, database: Any
) -> None:
    """It runs on after the wait, and is stopped in order as any other."""
    assert not await left.leave(0.5)
    flights.add(files=1)
    await written()
    await left.stop(10)
    assert await left.ended() is None
    flights.add(files=1)
    assert len(database.ids()) < len(flights.ids)


async def test_an_heir_that_starts_anew_ends_the_query_that_was_left(
    *, left: Any, start: Any, flights: Any, plain: Any, written: Any
) -> None:
    """Its definition is another one: the owner before hears that it is over, and nothing is wrong."""
    leaving = asyncio.ensure_future(left.leave(60))
    owner = await start(token=2, sql="SELECT * FROM source WHERE id >= 0", **plain)
    assert await leaving
    assert await left.ended() is None
    assert run_id(owner) != run_id(left)
    flights.add(files=1)
    await written()
