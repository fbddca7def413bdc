"""Shares of one Spark between tasks, as its own event log has them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from definition.scheduling import Scheduling
from worker.query_engine import QueryError
from worker.spark.classic.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Start

ROOT = Path(__file__).parents[3]
CORES = 9
SCRIPT = """
import asyncio, json, sys
from definition.document import parse_definition
from worker.query_engine import QuerySpec
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

LOG, ROOT, CORES = sys.argv[1], sys.argv[2], sys.argv[3]
MANY = {"format": "rate-micro-batch", "options": {"rowsPerBatch": "600", "numPartitions": "600"}}

def spec(task, **scheduling):
    document = {"source": MANY, "sink": {"format": "noop"}, **scheduling}
    return QuerySpec("g", task, 1, parse_definition(json.dumps(document).encode()))

async def main():
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": LOG, "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    settings = SparkSettings(app_name="pools", checkpoint_root=ROOT, conf=conf, master=f"local[{CORES}]")
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    light = await engine.start(spec("light", scheduling={"weight": 1}))
    heavy = await engine.start(spec("heavy", scheduling={"weight": 8}))
    ended = asyncio.ensure_future(heavy.ended())
    async with asyncio.timeout(120):
        while (done := heavy.progress()) is None or done.batch_id < 1:
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    await asyncio.gather(light.stop(30), heavy.stop(30))
    await engine.close()

asyncio.run(main())
"""


async def test_a_task_of_eight_times_the_weight_gets_more_of_the_cores(tmp_path: Path) -> None:
    """Counted are the starts of Spark's tasks at moments when both had more to start."""
    log = tmp_path / "log"
    log.mkdir()
    arguments = (str(log), str(tmp_path / "checkpoints"), str(CORES))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, *arguments, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    (file,) = [path for path in log.rglob("*") if path.is_file()]
    starts = Counter(starts_while_both_wait(map(json.loads, file.read_text().splitlines())))
    assert starts.total() > 300, starts
    assert starts["heavy"] > 5 * starts["light"], starts


def starts_while_both_wait(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The pool of each task of Spark's that was started while both pools had others to start."""
    pools: dict[int, str] = {}
    waiting: dict[int, int] = {}
    for event in events:
        stage = event.get("Stage ID")
        match event["Event"]:
            case "SparkListenerStageSubmitted":
                info = event["Stage Info"]
                pools[info["Stage ID"]] = event["Properties"].get("spark.scheduler.pool", "")
                waiting[info["Stage ID"]] = info["Number of Tasks"]
            case "SparkListenerTaskStart" if stage in waiting:
                waiting[stage] -= 1
                if {pools[each] for each, left in waiting.items() if left} >= {"light", "heavy"}:
                    yield pools[stage]
            case "SparkListenerStageCompleted":
                waiting.pop(event["Stage Info"]["Stage ID"], None)


def figures(spark: SparkSession, pool: str) -> tuple[int, int] | None:
    """Weight and minimum share of a pool, if there is one."""
    context: Any = spark.sparkContext._jsc
    found = context.sc().taskScheduler().rootPool().getSchedulableByName(pool)
    return None if found is None else (found.weight(), found.minShare())


async def test_the_next_start_brings_other_figures(spark: SparkSession) -> None:
    """Also those that the definition has no more: then it is Spark's own pool again."""
    pools = Pools(spark)
    pools.prepare("of-other-figures", None)
    assert figures(spark, "of-other-figures") is None
    pools.prepare("of-other-figures", Scheduling(weight=8, min_share=2))
    assert figures(spark, "of-other-figures") == (8, 2)
    pools.prepare("of-other-figures", Scheduling(weight=3))
    assert figures(spark, "of-other-figures") == (3, 0)
    pools.prepare("of-other-figures", None)
    assert figures(spark, "of-other-figures") is None


async def test_a_pool_of_the_users_own_file_is_left_alone(spark: SparkSession) -> None:
    """As long as the definition says nothing."""
    context: Any = spark.sparkContext
    scheduler, root = context._jvm.org.apache.spark.scheduler, context._jsc.sc().taskScheduler().rootPool()
    root.addSchedulable(scheduler.Pool("from-file", scheduler.SchedulingMode.FIFO(), 1, 5))
    Pools(spark).prepare("from-file", None)
    assert figures(spark, "from-file") == (5, 1)


async def test_a_query_s_jobs_find_the_pool_of_its_definition(spark: SparkSession, start: Start) -> None:
    """It is there before the query is."""
    rate, noop = {"format": "rate"}, {"format": "noop"}
    query = await start("shared", source=rate, sql=None, sink=noop, scheduling={"weight": 4})
    assert figures(spark, "shared") == (4, 0)
    await query.stop(10)


async def test_without_fair_scheduling_shares_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be without effect, and nobody would know."""
    monkeypatch.setattr("worker.spark.classic.pools._FAIR", "another")
    with pytest.raises(
        QueryError, match=r"^scheduling: has no effect here: .*spark.scheduler.mode"
    ) as caught:
        Pools(spark).prepare("t", Scheduling(weight=2))
    assert caught.value.permanent
