"""Queries that get nowhere in a real Spark: each is found, and says what it is at."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from definition.limits import Limit, Limits
from worker.spark.whereabouts import Whereabouts
from worker.tasks.limits import End, Exceeded, LimitsWatch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from worker.query_engine import Stall
    from worker.spark.query import SparkQuery

FOUR_TASKS = {"rowsPerBatch": "4", "numPartitions": "4"}
FOUR = {"format": "rate-micro-batch", "options": FOUR_TASKS}
NOOP = {"format": "noop"}
LIMITS = {"hung_s": 1}
PATIENCE_S = 240.0


async def stall_of(query: SparkQuery, words: str) -> Stall:
    """What is told of its silence, once it is silent and has come to what these words say."""
    ended = asyncio.ensure_future(query.ended())
    async with asyncio.timeout(PATIENCE_S):
        while (stall := query.stall) is None or words not in str(stall):
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    ended.cancel()
    return stall


async def whereabouts(query: SparkQuery, words: str) -> Whereabouts:
    """What it says to be at, once that has these words."""
    said: Whereabouts | None = None
    async with asyncio.timeout(PATIENCE_S):
        while said is None or words not in said.words:
            said = await asyncio.to_thread(query._handle.whereabouts)
    return said


def ends(stall: Stall) -> bool:
    """Whether a limit that quarantines would end the query that is silent so."""
    watch = LimitsWatch(Limits(hung_s=Limit(max=1, action="quarantine")))
    told = watch.look(None, stall, is_at_work=True, now=0)
    assert Exceeded("hung_s") in told
    return any(isinstance(each, End) for each in told)


async def test_the_code_of_the_user_that_does_not_come_back_is_named(
    *, start: Any, flights: Any, entrypoint: Any, stage: Any, catch_up: Any
) -> None:
    """By function and line; when the batch is done after all, nothing is told any more."""

    def hold(context: Any) -> Any:
        frame = context.spark.readStream.schema(flights.source["schema"]).json(str(flights.folder))
        return context.foreach_batch(frame, lambda _, __: stage.pause())

    flights.add()
    query = await start(entrypoint=entrypoint(hold), limits=LIMITS)
    stall = await stall_of(query, "code of the user")
    assert stall.silent_s > 1
    assert stall.where is not None
    assert stall.where.startswith("it runs code of the user, in tests.integration.spark.conftest.Stage.pause")
    assert query.trouble == str(stall)
    stage.go_on.set()
    await catch_up(query)
    assert (query.stall, query.trouble) == (None, None)


async def test_a_lock_of_another_thread_is_named_with_who_has_it(
    *, start: Any, spark: SparkSession, flights: Any, entrypoint: Any, stage: Any
) -> None:
    """The query's thread is where a call of the user's to Java waits, too."""
    lock = spark._jvm.java.util.concurrent.locks.ReentrantLock()  # type: ignore[union-attr]

    def keep() -> None:
        lock.lock()
        stage.pause()
        lock.unlock()

    def hold(context: Any) -> Any:
        frame = context.spark.readStream.schema(flights.source["schema"]).json(str(flights.folder))
        return context.foreach_batch(frame, lambda _, __: lock.lock())

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        await stage.until_reached()
        flights.add()
        stall = await stall_of(await start(entrypoint=entrypoint(hold), limits=LIMITS), "lock")
    finally:
        stage.go_on.set()
        await asyncio.to_thread(keeper.join)
    assert stall.where is not None
    assert stall.where.startswith("it waits for a lock that thread Thread-")
    assert "ReentrantLock" in stall.where
    assert "code of the user" in stall.where


async def test_a_starved_query_names_the_task_that_has_the_cores(
    *, start: Any, entrypoint: Any, tmp_path: Path
) -> None:
    """That one says that it computes, in Python functions of its own, and it alone is ended by its limit."""
    go_on, opened = str(tmp_path / "go-on"), tmp_path / "opened"
    os.mkfifo(go_on)
    opened.touch()

    def hog(context: Any) -> Any:
        def hold(value: int) -> int:
            with open(go_on):  # noqa: PTH123 - it is sent to another process
                return value

        frame = context.spark.readStream.format("rate-micro-batch").options(**FOUR_TASKS).load()
        udf = sql.udf(lambda value: hold(value), "long")  # noqa: PLW0108 - PySpark misreads annotations
        return frame.select(udf("value")).writeStream.format("noop")

    hogging = await start("hog", entrypoint=entrypoint(hog), limits=LIMITS)
    computing = await whereabouts(hogging, "in Python functions")
    starved = await start("starved", source=FOUR, sink=NOOP, limits=LIMITS)
    try:
        waiting = await whereabouts(starved, "scheduler")
        stall = await stall_of(starved, "while 2 of hog run")
        hung = await stall_of(hogging, "in Python functions")
    finally:
        writing = os.open(go_on, os.O_RDWR)
        opened.replace(
            go_on
        )  # whoever comes later, behind the end of the query even, does not wait for a writer
    said = "it waits for the scheduler: 4 Spark tasks of it wait, while 2 of hog run"
    assert waiting == Whereabouts(said, is_held_up=True)
    assert computing == Whereabouts(
        "Spark computes its batch: 2 of its Spark tasks run, 2 wait, in Python functions of its query"
    )
    assert stall.silent_s > 1
    assert not ends(stall)
    assert ends(hung)
    ended = asyncio.ensure_future(starved.ended())
    async with asyncio.timeout(PATIENCE_S):
        while starved.stall is not None:
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    ended.cancel()
    await hogging.stop(30)
    os.close(writing)


async def test_queries_that_wait_for_each_other_hold_themselves_up(
    *, start: Any, spark: SparkSession, flights: Any, entrypoint: Any
) -> None:
    """Each has the lock that the other one wants; a third that waits for one of them is held up."""
    make = spark._jvm.java.util.concurrent.locks.ReentrantLock  # type: ignore[union-attr]
    locks = {"left": make(), "right": make()}
    both = threading.Barrier(2)

    def batches(first: str, second: str, *, waits: bool) -> Any:
        def take(_frame: Any, _batch: int) -> None:
            if waits:
                locks[first].lockInterruptibly()
                both.wait()
            locks[second].lockInterruptibly()

        def hold(context: Any) -> Any:
            frame = context.spark.readStream.schema(flights.source["schema"]).json(str(flights.folder))
            return context.foreach_batch(frame, take)

        return hold

    flights.add()
    left = await start("left", entrypoint=entrypoint(batches("left", "right", waits=True)))
    right = await start("right", entrypoint=entrypoint(batches("right", "left", waits=True)))
    for query, other in ((left, "right"), (right, "left")):
        said = await whereabouts(query, f"a lock that the query of task {other} has")
        assert not said.is_held_up
    third = await start("third", entrypoint=entrypoint(batches("", "left", waits=False)))
    said = await whereabouts(third, "a lock that the query of task left has")
    assert said.is_held_up
    await asyncio.gather(*(query.stop(0) for query in (left, right, third)))


async def test_a_query_that_is_over_is_nowhere(start: Any, flights: Any, catch_up: Any) -> None:
    """Its thread is gone; while it rests, it is where Spark waits for its trigger."""
    query = await start(source=flights.source, sink=NOOP)
    await catch_up(query)
    handle = query._handle
    assert await asyncio.to_thread(handle.whereabouts)
    await query.stop(10)
    assert await asyncio.to_thread(handle.whereabouts) is None
