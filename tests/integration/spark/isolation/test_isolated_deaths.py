from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.fakes.turns import eventually
from tests.integration.spark.isolation.conftest import jvm_below, jvm_of, left_of, until_batch
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.isolation.engine import IsolatedEngine
    from worker.query_engine import QuerySpec

ROOT = Path(__file__).parents[4]
RATE = {"format": "rate", "options": {"rowsPerSecond": 5}}
TIMEOUT_S = 240
HUGE = "SELECT id, carrier, CAST(length(repeat('x', 600000000)) AS DOUBLE) AS delay FROM source"


async def test_the_death_of_one_jvm_is_the_death_of_one_task(
    *, start_isolated: Any, flights: Any, database: Any
) -> None:
    """The other's batches go on; started again, the first has each row in its sink once."""
    flights.add(files=2)
    sink = database.sink("flights")
    doomed, other = await asyncio.gather(
        start_isolated("doomed", source=flights.source, sink=sink),
        start_isolated("other", source=RATE, sink=database.sink("rates")),
    )
    await asyncio.gather(until_batch(doomed, 1), until_batch(other, 0))
    os.kill(jvm_of(doomed), signal.SIGKILL)
    ended = await doomed.ended()
    assert ended.cause.startswith("the JVM of this task was killed by signal 9")
    assert (ended.fenced, ended.permanent, ended.outage) == (False, False, False)
    await until_batch(other, other.progress().batch_id + 2)
    flights.add(files=2)
    again = await start_isolated("doomed", source=flights.source, sink=sink)
    assert again.committed is not None
    await until_batch(again, 3)
    assert database.ids() == flights.ids


async def test_a_batch_that_needs_too_much_memory(
    *, start_isolated: Any, flights: Any, database: Any
) -> None:
    """Its JVM ends by itself, and the cause says what of."""
    flights.add()
    query = await start_isolated(source=flights.source, sql=HUGE, sink=database.sink())
    ended = await query.ended()
    assert ended.cause == (
        "the JVM of this task ran out of memory (Java heap space): its heap is 512m, see --isolate-memory-mb"
    )
    await query.process_over
    assert not left_of(query.process.pid)


async def test_a_process_that_is_frozen_is_found_and_killed(
    isolated: IsolatedEngine, spec: Callable[..., QuerySpec], database: Any
) -> None:
    """With its JVM, which is not frozen, after no answer for as long as a JVM may be silent."""
    isolated._settings = msgspec.structs.replace(isolated._settings, jvm_timeout_s=3.0)
    query = await isolated.start(spec("t", 1, source=RATE, sink=database.sink()))
    pid = query.process.pid
    os.kill(pid, signal.SIGSTOP)
    ended = await query.ended()
    assert ended == QueryError(
        "the process of this task has not answered for 3 s and was killed; see --jvm-timeout-ms"
    )
    await eventually(lambda: not left_of(pid))


async def test_a_killed_engine_writes_no_more(
    isolated: IsolatedEngine, start_isolated: Any, database: Any
) -> None:
    """The watchdog's last resort: every process is ended, and none begins after it."""
    queries = await asyncio.gather(
        *(start_isolated(name, source=RATE, sink=database.sink(name)) for name in ("a", "b"))
    )
    jvms = [os.pidfd_open(jvm_of(query)) for query in queries]
    assert isolated.kill()
    for jvm in jvms:
        assert select.select([jvm], [], [], TIMEOUT_S)[0] == [jvm]
        os.close(jvm)
    for query in queries:
        assert "killed by signal 9" in (await query.ended()).cause
    with pytest.raises(QueryError, match="Spark is not running"):
        await start_isolated("c", source=RATE, sink=database.sink("c"))


async def test_a_closed_engine_leaves_nothing(
    isolated: IsolatedEngine, start_isolated: Any, database: Any
) -> None:
    """Neither a process nor a JVM, be its query running or just being started."""
    query = await start_isolated("running", source=RATE, sink=database.sink("running"))
    at: asyncio.Queue[str] = asyncio.Queue()
    starting = asyncio.ensure_future(isolated.start(query.spec, at.put_nowait))
    while await at.get() != "Spark, in a JVM of its own":
        pass
    (other,) = isolated._queries - {query}
    await isolated.close()
    assert (await query.ended()).cause == "Spark was closed"
    with pytest.raises(QueryError, match="Spark was closed"):
        await starting
    await eventually(lambda: not left_of(query.process.pid) + left_of(other.process.pid))


DOOMED = """
import asyncio, json, sys
from definition.document import parse_definition
from tests.fakes.query_engine import FakeEngine
from worker.isolation.engine import IsolatedEngine
from worker.query_engine import QuerySpec
from worker.spark.settings import SparkSettings

RATE = {"source": {"format": "rate"}, "sink": {"format": "noop"}}

async def main(root):
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    settings = SparkSettings(app_name="doomed", checkpoint_root=root, conf=conf)
    engine = IsolatedEngine(settings, lambda: True, make_home=lambda *_: FakeEngine())
    await engine.open()
    query = await engine.start(QuerySpec("g", "t", 1, parse_definition(json.dumps(RATE).encode())))
    print("process", query.process.pid, flush=True)
    await asyncio.get_running_loop().create_future()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("frozen", ["nothing", "process", "jvm"])
async def test_nothing_outlives_a_killed_worker(frozen: str, tmp_path: Path) -> None:
    """Also what stands still at that moment."""
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DOOMED, str(tmp_path)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdout is not None
    while not (line := await worker.stdout.readline()).startswith(b"process "):
        assert line
    pid = int(line.split()[1])
    jvm = jvm_below(pid)
    ends = [os.pidfd_open(pid), os.pidfd_open(jvm)]
    if frozen != "nothing":
        os.kill(jvm if frozen == "jvm" else pid, signal.SIGSTOP)
    worker.kill()
    await worker.wait()
    for end in ends:
        ready, _, _ = await asyncio.to_thread(select.select, [end], [], [], TIMEOUT_S)
        assert ready == [end]
        os.close(end)
    await eventually(lambda: not left_of(pid))


HOMELESS = """
import asyncio, json, os, signal, sys
from definition.document import parse_definition
from worker.isolation.engine import IsolatedEngine
from worker.query_engine import CheckSpec, QuerySpec
from worker.spark.settings import SparkSettings

RATE = {"source": {"format": "rate"}, "sink": {"format": "noop"}}

async def main(root):
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    engine = IsolatedEngine(SparkSettings(app_name="home", checkpoint_root=root, conf=conf), lambda: True)
    await engine.open()
    definition = parse_definition(json.dumps(RATE).encode())
    query = await engine.start(QuerySpec("g", "t", 1, definition))
    ended = asyncio.ensure_future(query.ended())
    home = engine._home.engine
    os.kill(home._backend.jvm._process.pid, signal.SIGKILL)
    while engine._home.engine is home:
        await asyncio.wait({ended}, timeout=0.1)
        assert not ended.done()
    checked = await engine.check(CheckSpec("g", definition, 1, "earliest"))
    await query.stop(30)
    await engine.close()
    json.dump([column.name for column in checked.columns], sys.stdout)

asyncio.run(main(sys.argv[1]))
"""


async def test_the_worker_s_own_spark_is_opened_again(tmp_path: Path) -> None:
    """Its death harms no query, and checks are done by the next one."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOMELESS, str(tmp_path)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert out.decode().splitlines()[-1] == '["timestamp", "value"]'
