from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from worker.spark.engine import SparkEngine

ONCE = {"available_now": True}
DELAYS = "SELECT carrier, COUNT(*) AS flights, MAX(delay) AS worst FROM source GROUP BY carrier"


async def test_a_declared_task_from_source_to_sink(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Rows go through the SQL into the table, batch by batch; progress has the figures."""
    flights.add(files=3)
    query = await start(
        source=flights.source, sql="SELECT id, delay FROM source WHERE id <> 7", sink=database.sink()
    )
    await catch_up(query)
    assert database.ids() == [n for n in flights.ids if n != 7]
    told = query.progress()
    assert told.batch_id == 2
    assert told.metrics["rows"] == 10
    assert told.metrics["total_rows"] == 29  # Spark's JSON reader drops the filtered row itself
    assert told.metrics["sink_rows"] == 29
    assert told.metrics["batch_ms"] > 0
    await query.stop(30)
    assert await query.ended() is None


async def test_a_query_that_waits_for_data_has_not_come_to_the_next_batch(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Spark tells that it is idle under the id of the batch to come: the next owner would look for that."""
    flights.add(files=1)
    query = await start(
        source=flights.source,
        sink=database.sink(),
        spark_conf={"spark.sql.streaming.noDataProgressEventInterval": "100"},
    )
    await catch_up(query)
    while query._handle.last_batch() < 1:
        await asyncio.to_thread(query._handle.is_resting)
    assert query.progress().batch_id == 0
    flights.add(files=1)
    await catch_up(query)
    assert (query.progress().batch_id, query.progress().metrics["total_rows"]) == (1, 20)


async def test_the_next_owner_goes_on_where_the_last_one_stopped(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """From the checkpoint, under a higher token: no row lost, none twice; the sink's total goes on."""
    flights.add(files=2)
    first = await start(token=1, source=flights.source, sink=database.sink())
    await catch_up(first)
    await first.stop(30)
    flights.add(files=2)
    second = await start(token=2, source=flights.source, sink=database.sink())
    await catch_up(second)
    assert database.ids() == flights.ids
    assert second.progress().batch_id == 3
    assert second.progress().metrics["total_rows"] == 20
    assert second.progress().metrics["sink_rows"] == 40


async def test_views_of_one_name_do_not_meet(start: Any, flights: Any, database: Any, tmp_path: Path) -> None:
    """Two tasks in one worker each have a view `source`, and settings of their own."""
    other = type(flights)(tmp_path / "other")
    flights.add(rows=3)
    other.add(rows=5)
    sql = "SELECT id, current_timezone() AS zone FROM source"
    one, two = await asyncio.gather(
        start("one", source=flights.source, sql=sql, sink=database.sink("one"), trigger=ONCE),
        start(
            "two",
            source=other.source,
            sql=sql,
            sink=database.sink("two"),
            trigger=ONCE,
            spark_conf={"spark.sql.session.timeZone": "Asia/Tokyo"},
        ),
    )
    assert [await one.ended(), await two.ended()] == [None, None]
    assert database.query("SELECT COUNT(*), MIN(zone) FROM one") == [(3, "UTC")]
    assert database.query("SELECT COUNT(*), MIN(zone) FROM two") == [(5, "Asia/Tokyo")]


async def test_a_bounded_query_comes_to_its_end(start: Any, flights: Any, database: Any) -> None:
    """`available_now` ends without a cause, its last batch known; a second run has nothing to do."""
    flights.add(files=3)
    query = await start(source=flights.source, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert query.progress().batch_id == 2
    assert database.ids() == flights.ids
    await query.stop(30)
    again = await start(token=2, source=flights.source, sink=database.sink(), trigger=ONCE)
    assert await again.ended() is None
    assert database.ids() == flights.ids


async def test_the_trigger_of_an_entry_point(
    start: Any, entrypoint: Any, flights: Any, database: Any
) -> None:
    """One that makes its query bounded by itself ends in order, without a word in the definition."""
    flights.add(files=2)

    def run(context: Any) -> Any:
        rows = context.spark.readStream.schema("id LONG").json(str(flights.folder))
        return context.sink(rows, url=f"sqlite:///{database.path}", table="flights").trigger(
            availableNow=True
        )

    query = await start(entrypoint=entrypoint(run))
    assert await query.ended() is None
    assert database.ids() == flights.ids


async def test_queries_that_are_over_leave_no_listener(
    start: Any, flights: Any, database: Any, spark: SparkSession
) -> None:
    """Each session has a bus of its own at Spark's: it goes with the query, and with a start that failed."""
    context: Any = spark.sparkContext._jsc
    listeners = context.sc().listenerBus().listeners
    flights.add()
    before = listeners().size()
    for token in range(1, 6):
        query = await start(token=token, source=flights.source, sink=database.sink(), trigger=ONCE)
        assert await query.ended() is None
        with pytest.raises(QueryError):
            await start("no", token=token, source=flights.source, sink={"format": "jdbc"})
    assert listeners().size() <= before + 1  # Spark's own for SQL comes with the first query


async def test_a_listener_of_an_entry_point_hears_of_the_end(
    start: Any, entrypoint: Any, flights: Any
) -> None:
    """The session's bus is not taken away before it has told all there was."""
    flights.add()
    heard = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - PySpark's name
            del event

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - as above
            del event

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - as above
            heard.append(event.exception)

    def run(context: Any) -> Any:
        context.spark.streams.addListener(Listener())
        rows = context.spark.readStream.schema("id LONG").json(str(flights.folder))
        return rows.writeStream.format("noop")

    query = await start(entrypoint=entrypoint(run), trigger=ONCE)
    assert await query.ended() is None
    assert heard == [None]


async def test_sinks_of_spark_s_own(start: Any, flights: Any, tmp_path: Path) -> None:
    """Their options are passed on; there is no fence and none is asked for."""
    flights.add(files=2)
    options = {"path": str(tmp_path / "out"), "compression": "gzip"}
    query = await start(source=flights.source, sink={"format": "json", "options": options}, trigger=ONCE)
    assert await query.ended() is None
    assert len(list((tmp_path / "out").glob("*.json.gz"))) == 2


async def test_a_trigger_with_an_interval(start: Any, flights: Any, database: Any) -> None:
    """`processing_time` reaches Spark; nobody waits for the hour to pass."""
    trigger = {"processing_time": "1 hour"}
    query = await start(source=flights.source, sink=database.sink(), trigger=trigger)
    assert query._handle.query._jsq.streamingQuery().trigger().toString() == "ProcessingTimeTrigger(3600000)"
    await query.stop(30)
    assert await query.ended() is None


@pytest.mark.parametrize("output_mode", ["update", "complete"])
async def test_upserts_of_an_aggregate(
    *, output_mode: str, start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Output modes update and complete with mode upsert keep one row a key, the newest."""
    flights.add(files=3)
    sink = database.sink("delays", mode="upsert", key=["carrier"])
    query = await start(source=flights.source, sql=DELAYS, sink=sink, output_mode=output_mode)
    await catch_up(query)
    assert database.query("SELECT * FROM delays ORDER BY carrier") == [
        ("AA", 10, 14.0),
        ("B6", 10, 14.5),
        ("UA", 10, 13.5),
    ]


async def test_a_watermark_s_batches_without_data_are_no_gap(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """Spark runs batches of its own to close windows; they count in the order like all others."""
    flights.add(files=3)
    sql = (
        "SELECT window.end AS at, COUNT(*) AS n FROM "
        "(SELECT timestamp_seconds(id) AS ts FROM source) WATERMARK ts DELAY OF INTERVAL 1 SECOND "
        "GROUP BY window(ts, '5 seconds')"
    )
    query = await start(source=flights.source, sql=sql, sink=database.sink("windows"))
    await catch_up(query)
    flights.add()
    await catch_up(query)
    counts = dict(database.query("SELECT at, n FROM windows"))
    assert set(counts.values()) == {5}
    assert len(counts) == 7
    assert query.progress().batch_id > 3


async def test_an_entry_point_has_its_task_at_hand(
    start: Any, flights: Any, database: Any, entrypoint: Any, catch_up: Any
) -> None:
    """Session, options, names, token and checkpoint; the context's sink is the fenced one."""
    flights.add(files=2)
    seen: dict[str, Any] = {}

    def run(context: Any) -> Any:
        seen.update(group=context.group, task=context.task, token=context.token, options=context.options)
        seen["checkpoint"] = context.checkpoint
        frame = context.spark.readStream.schema("id LONG").json(context.options["path"])
        return context.sink(frame, **context.options["to"])

    options = {"path": str(flights.folder), "to": database.sink()["options"]}
    query = await start("mine", 5, entrypoint=entrypoint(run), options=options)
    await catch_up(query)
    assert database.ids() == flights.ids
    assert database.query("SELECT token, row_count FROM sparkherd_fence") == [(5, 20)]
    assert seen["options"] == options
    assert (seen["task"], seen["token"]) == ("mine", 5)
    assert seen["checkpoint"].endswith(f"/{seen['group']}/mine")


async def test_an_entry_point_may_leave_the_sink_to_the_definition(
    start: Any, flights: Any, database: Any, entrypoint: Any
) -> None:
    """`context.sink(frame)` is the definition's sink, with its output mode; the trigger is set too."""
    flights.add(files=2)

    def run(context: Any) -> Any:
        frame = context.spark.readStream.schema("carrier STRING").json(str(flights.folder))
        return context.sink(frame.groupBy("carrier").count())

    sink = database.sink("counts", mode="upsert", key=["carrier"])
    query = await start(entrypoint=entrypoint(run), sink=sink, output_mode="update", trigger=ONCE)
    assert await query.ended() is None
    assert dict(database.query("SELECT * FROM counts")) == {"UA": 7, "AA": 7, "B6": 6}


async def test_a_function_a_batch_runs_in_the_task_s_pool(
    start: Any, flights: Any, entrypoint: Any, catch_up: Any
) -> None:
    """`context.foreach_batch` hands over every batch; its jobs run in the FAIR pool named after the task."""
    flights.add(files=2)
    seen = []

    def run(context: Any) -> Any:
        def take(batch: Any, batch_id: int) -> None:
            pool = batch.sparkSession.sparkContext.getLocalProperty("spark.scheduler.pool")
            seen.append((batch_id, batch.count(), pool))

        source = context.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
        return context.foreach_batch(source.json(str(flights.folder)), take)

    query = await start("pooled", entrypoint=entrypoint(run))
    await catch_up(query)
    assert seen == [(0, 10, "pooled"), (1, 10, "pooled")]


async def test_a_start_nobody_waits_for_any_more(
    *,
    engine: SparkEngine,
    spec: Callable[..., Any],
    flights: Any,
    entrypoint: Any,
    stage: Any,
) -> None:
    """A start that is given up half-way leaves no query behind: it goes no further than it is."""

    def run(context: Any) -> Any:
        stage.pause()
        return context.spark.readStream.schema("id LONG").json(str(flights.folder)).writeStream.format("noop")

    wanted = spec("unwanted", 1, entrypoint=entrypoint(run))
    starting = asyncio.create_task(engine.start(wanted))
    await stage.until_reached()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    _, over = engine._starts._given_up["unwanted"]
    stage.go_on.set()
    await over
    assert wanted not in [query.spec for query in engine._monitor.watched()]
