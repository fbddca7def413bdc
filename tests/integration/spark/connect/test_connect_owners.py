from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.integration.spark.test_spark_fencing import raise_fence
from worker.query_engine import QueryError
from worker.spark.connect.gate_channel import GateState  # noqa: TC001


async def test_a_stop_lets_the_batch_in_flight_finish(
    *, start: Any, flights: Any, database: Any, guarded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written and committed on the server, and the next one never begins."""
    flights.add(files=4)
    query = await start(**guarded.held(1))
    await guarded.stage.until_reached()
    closed = threading.Event()
    send = query._gate._set_state

    def noted(state: GateState) -> None:
        send(state)
        closed.set()

    monkeypatch.setattr(query._gate, "_set_state", noted)
    stopping = asyncio.create_task(query.stop(60))
    await asyncio.to_thread(closed.wait)
    await guarded.stage.go_on()
    await stopping
    assert await query.ended() is None
    assert database.ids() == flights.ids[:20]


async def test_a_batch_that_takes_too_long_is_cut(
    start: Any, flights: Any, database: Any, guarded: Any
) -> None:
    """The process that is inside is killed; nothing is written, and the next owner does the batch anew."""
    flights.add(files=3)
    query = await start(**guarded.held(1))
    await guarded.stage.until_reached()
    await query.stop(0)
    assert await query.ended() is None
    assert database.ids() == flights.ids[:10]
    successor = await start(token=2, **guarded.definition(), trigger={"available_now": True})
    assert await successor.ended() is None
    assert database.ids() == flights.ids


async def test_a_new_owner_ends_what_a_former_one_left(
    start: Any, flights: Any, database: Any, guarded: Any
) -> None:
    """Its query is stopped inside a batch; the batch is the new owner's, and no row is there twice."""
    flights.add(files=3)
    former = await start(token=1, **guarded.held(1))
    await guarded.stage.until_reached()
    owner = await start(token=2, **guarded.definition(), trigger={"available_now": True})
    assert await owner.ended() is None
    ended = await former.ended()
    assert "on the Spark Connect server" in ended.cause
    assert "another worker has taken the task over" in ended.cause
    assert database.ids() == flights.ids


async def test_settling_a_task_ends_what_a_former_owner_left(
    *, start: Any, remote: Any, spec: Any, flights: Any, database: Any, guarded: Any
) -> None:
    """It has been stopped or paused since, and nobody starts it: its query is ended all the same."""
    flights.add(files=3)
    former = await start(token=1, **guarded.held(1))
    await guarded.stage.until_reached()
    await remote.settle(spec("t", 2, **guarded.definition()))
    ended = await former.ended()
    assert "on the Spark Connect server" in ended.cause
    assert "another worker has taken the task over" in ended.cause
    assert database.ids() == flights.ids[:10]


async def test_an_orphan_out_of_reach_is_fenced(
    start: Any, flights: Any, database: Any, guarded: Any
) -> None:
    """As on another server: it goes on until its batch is refused by the database it would write to."""
    flights.add(files=3)
    orphan = await start(token=1, **guarded.held(1))
    await guarded.stage.until_reached()
    raise_fence(database, orphan, 2)
    await guarded.stage.go_on()
    ended = await orphan.ended()
    assert ended.fenced
    assert "is fenced: its token 1 is older than 2" in ended.cause
    assert database.ids() == flights.ids[:10]
    owner = await start(token=3, **guarded.definition(), trigger={"available_now": True})
    assert await owner.ended() is None
    assert database.ids() == flights.ids


async def test_a_worker_without_a_lease_starts_nothing(start: Any, lease: Any) -> None:
    """Nor does it end what runs: the task may be somebody else's by now."""
    definition = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
    owner = await start(token=2, **definition)
    lease.holds = False
    with pytest.raises(QueryError, match="has lost its lease"):
        await start(token=1, **definition)
    assert owner._handle.query.isActive
