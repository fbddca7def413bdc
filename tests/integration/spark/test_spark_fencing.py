from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.sql import SqlOptions
from worker.query_engine import QueryError
from worker.sinks.fence import Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from worker.sinks.base import Batch, Written

DELAYS = "SELECT carrier, COUNT(*) AS n FROM source GROUP BY carrier"


def raise_fence(database: Any, query: Any, token: int) -> None:
    """What another worker does first when it takes the task over."""
    spec = query.spec
    sink = SqlSink(
        SqlOptions(url=f"sqlite:///{database.path}", table="x"), Owner(spec.group, spec.task, token)
    )
    sink.claim()
    sink.close()


@pytest.fixture
def crash_after_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker fails between the sink's commit and Spark's, once, at batch 1."""
    write = SqlSink.write
    crashes = iter([True])

    def write_and_crash(self: SqlSink, batch: Batch) -> Written:
        written = write(self, batch)
        if batch.mark.batch_id == 1 and next(crashes, False):
            raise OSError("the power is gone")
        return written

    monkeypatch.setattr(SqlSink, "write", write_and_crash)


async def test_a_zombie_s_query_is_fenced(start: Any, flights: Any, database: Any, catch_up: Any) -> None:
    """Once a newer owner has raised the fence, the older one's next batch ends its query, unwritten."""
    flights.add()
    zombie = await start(token=1, source=flights.source, sink=database.sink())
    await catch_up(zombie)
    raise_fence(database, zombie, 2)
    flights.add()
    ended = await zombie.ended()
    assert ended.fenced
    assert ended.cause is not None
    assert "is fenced: its token 1 is older than 2" in ended.cause
    assert database.ids() == flights.ids[:10]
    successor = await start(token=2, source=flights.source, sink=database.sink())
    await catch_up(successor)
    assert database.ids() == flights.ids


async def test_a_zombie_cannot_start(start: Any, flights: Any, database: Any, catch_up: Any) -> None:
    """An older token is refused before the query exists; its owner keeps running."""
    flights.add()
    owner = await start(token=2, source=flights.source, sink=database.sink())
    with pytest.raises(QueryError, match="is fenced: its token 1 is older than 2") as refused:
        await start(token=1, source=flights.source, sink=database.sink())
    assert refused.value.fenced
    await catch_up(owner)
    assert database.ids() == flights.ids


@pytest.mark.usefixtures("crash_after_writing")
async def test_a_batch_written_but_not_committed(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Spark runs it again, and the sink knows it: no row twice."""
    flights.add(files=3)
    first = await start(token=1, source=flights.source, sink=database.sink())
    assert (await first.ended()).cause.startswith("OSError: the power is gone")
    assert database.ids() == flights.ids[:20]
    second = await start(token=2, source=flights.source, sink=database.sink())
    await catch_up(second)
    assert database.ids() == flights.ids
    assert second.progress().metrics["sink_rows"] == 30


@pytest.mark.usefixtures("crash_after_writing")
async def test_a_duplicate_of_a_query_with_state(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """The repeated batch is not written, but it is computed: Spark's state needs it for the next one."""
    flights.add(files=3)
    sink = database.sink("counts", mode="upsert", key=["carrier"])
    first = await start(token=1, source=flights.source, sql=DELAYS, sink=sink, output_mode="update")
    assert (await first.ended()).cause.startswith("OSError")
    second = await start(token=2, source=flights.source, sql=DELAYS, sink=sink, output_mode="update")
    await catch_up(second)
    assert dict(database.query("SELECT * FROM counts")) == {"UA": 10, "AA": 10, "B6": 10}
