"""What limits go by, as Spark tells it."""

from __future__ import annotations

from typing import Any

from definition.limits import Limits
from tests.integration.spark.limited_tasks import REVISION, quarantine_asked_for
from tests.integration.spark.test_spark_figures import look_around
from worker.tasks.limits import Exceeded, LimitsWatch


async def test_the_rows_of_all_state_stores_are_told(start: Any, flights: Any, catch_up: Any) -> None:
    """An aggregate has a row a key; its memory is told as well, and a query without state has neither."""
    flights.add(files=2)
    noop = {"format": "noop"}
    counting = await start(
        "counting",
        source=flights.source,
        sql="SELECT id, count(*) FROM source GROUP BY id",
        sink=noop,
        output_mode="update",
    )
    plain = await start("plain", source=flights.source, sink=noop)
    await catch_up(counting)
    await catch_up(plain)
    state = counting.progress().metrics["state"]
    assert state["rows"] == len(flights.ids)
    assert state["memory_bytes"] > 0
    assert "state" not in plain.progress().metrics
    watch = LimitsWatch(Limits(state_rows=len(flights.ids) - 1, state_mb=1e6))
    assert Exceeded("state_rows") in watch.look(counting.progress(), is_at_work=False, now=0)


async def test_a_task_with_too_large_a_state_asks_for_its_quarantine(
    engine: Any, flights: Any, database: Any
) -> None:
    """When its query is over; the batch that was too large is whole in the sink."""
    flights.add(files=2)
    report = await quarantine_asked_for(
        engine,
        source=flights.source,
        sql="SELECT id, count(*) AS n FROM source GROUP BY id",
        sink=database.sink(mode="upsert", key=["id"]),
        output_mode="update",
        limits={"state_rows": {"max": 15, "action": "quarantine"}},
    )
    assert all(query._ended.done() for query in engine._monitor.watched())
    assert (report.state.value, report.tasks_revision) == ("FAILED", REVISION)
    assert report.cause == "limits.state_rows: its state has 20 rows, more than 15"
    assert report.metrics is not None
    assert report.metrics["exceeded"] == {"state_rows": 1}
    assert sorted(database.ids()) == flights.ids


async def test_a_batch_that_hangs_is_seen_at_work(
    *, start: Any, flights: Any, entrypoint: Any, stage: Any, catch_up: Any
) -> None:
    """From the first batch on; at rest there is none under way."""

    def hold(context: Any) -> Any:
        frame = context.spark.readStream.schema(flights.source["schema"]).json(str(flights.folder))
        return context.foreach_batch(frame, lambda _, __: stage.pause())

    flights.add()
    query = await start(entrypoint=entrypoint(hold))
    await stage.until_reached()
    await look_around(query)
    watch = LimitsWatch(Limits(batch_s=60))
    for now in range(0, 61, 10):
        assert watch.look(query.progress(), is_at_work=query.is_at_work, now=now) == []
    assert Exceeded("batch_s") in watch.look(query.progress(), is_at_work=query.is_at_work, now=61)
    stage.go_on.set()
    await catch_up(query)
    await look_around(query)
    assert not query.is_at_work
