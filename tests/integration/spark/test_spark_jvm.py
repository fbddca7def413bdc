from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from worker.query_engine import QueryError
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
DOOMED = """
import asyncio, json, os, signal, sys
from definition.document import parse_definition
from worker.query_engine import QuerySpec, QueryError
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

RATE = {"source": {"format": "rate"}, "sink": {"format": "noop"}}

async def main(root):
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    settings = SparkSettings(app_name="doomed", checkpoint_root=root, conf=conf)
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    spec = QuerySpec("g", "t", 1, parse_definition(json.dumps(RATE).encode()))
    query = await engine.start(spec)
    os.kill(engine._backend.jvm._process.pid, signal.SIGKILL)
    async with asyncio.timeout(120):
        how, ended = await asyncio.gather(engine.died(), query.ended())
    told = {"how": how.how, "ended": ended.cause}
    await query.stop(30)
    try:
        await engine.start(spec)
    except QueryError as error:
        told["start"] = str(error)
    await engine.close()
    json.dump(told, sys.stdout)

asyncio.run(main(sys.argv[1]))
"""


async def test_the_death_of_the_jvm_is_noticed(tmp_path: Path) -> None:
    """The engine and its queries know how it ended; stop, start and close do not hang on it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DOOMED, str(tmp_path)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told = json.loads(out.decode().splitlines()[-1])
    assert told["how"] == told["ended"] == "the JVM was killed by signal 9"
    assert told["start"]
    assert b"Traceback" not in err


HUNG = """
import asyncio, json, os, signal, sys
from definition.document import parse_definition
from worker.query_engine import QuerySpec
from worker.spark import engine as spark_engine
from worker.spark.classic import jvm
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

spark_engine.CLOSE_TIMEOUT_S = jvm._EXIT_TIMEOUT_S = 1  # one that stands still never does what they wait for
RATE = {"source": {"format": "rate"}, "sink": {"format": "noop"}}

async def main(root):
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    limit = 3.0 if sys.argv[2] == "watched" else 3600.0
    settings = SparkSettings(app_name="hung", checkpoint_root=root, conf=conf, jvm_timeout_s=limit)
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    query = await engine.start(QuerySpec("g", "t", 1, parse_definition(json.dumps(RATE).encode())))
    process = engine._backend.jvm._process
    os.kill(process.pid, signal.SIGSTOP)
    told = {"url": engine.url}
    if sys.argv[2] == "watched":
        death, ended = await asyncio.gather(engine.died(), query.ended())
        told["how"] = death.how
        told["ended"] = ended.cause
    await engine.close()
    json.dump({**told, "code": process.poll()}, sys.stdout)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("way", ["watched", "closed"])
async def test_a_jvm_that_hangs_is_killed(tmp_path: Path, way: str) -> None:
    """When it has not answered for long enough, or when the worker ends; then it is as dead as any other."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HUNG, str(tmp_path), way),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told = json.loads(out.decode().splitlines()[-1])
    assert told["code"] == -9
    if way == "watched":
        assert told["how"] == told["ended"]
        assert told["how"] == "the JVM has not answered for 3 s and was killed; see --jvm-timeout-ms"
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("home", "path", "said"),
    [
        (None, "", "Spark needs Java and there is none on the PATH: install Java 17 or newer"),
        ("/nowhere", None, "Spark needs Java and /nowhere/bin/java does not run: install Java 17 or newer"),
        ("old", None, "is Java 8: install Java 17 or newer"),
    ],
)
async def test_without_java(
    *, home: str | None, path: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what is missing and how to get it."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if path is not None:
        monkeypatch.setenv("PATH", path)
    if home == "old":
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n")
        java.chmod(0o755)
        home = str(tmp_path)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    engine = SparkEngine(SparkSettings(app_name="none", checkpoint_root=str(tmp_path)), lambda: True)
    with pytest.raises(QueryError) as refused:
        await engine.open()
    assert said in str(refused.value)
    assert "apt-get install openjdk-17-jre-headless" in str(refused.value)
    assert "\n" not in str(refused.value)
    await engine.close()


async def test_nothing_listens_to_the_outside(spark: SparkSession) -> None:
    """A worker with a local master opens no port but on this machine's own address."""
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # it is running
    assert _listening(pid) <= {"0100007F", "0000000000000000FFFF00000100007F"}


async def test_a_jvm_that_was_frozen_does_not_take_its_own_executor_for_lost(spark: SparkSession) -> None:
    """Spark asks after two minutes without a sign of life, and ends a JVM whose executor it has removed."""
    patience = "spark.storage.blockManagerHeartbeatTimeoutMs"
    assert spark.sparkContext.getConf().get(patience) == "365d"


def _listening(pid: int) -> set[str]:
    """The addresses, in the kernel's hexadecimal, on which a process listens."""
    sockets = {
        link.readlink().name.removeprefix("socket:[").removesuffix("]")
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if link.is_symlink() and "socket:" in str(link.readlink())
    }
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and columns[9] in sockets:
                listening.add(columns[1].partition(":")[0])
    return listening


async def test_the_session_has_the_worker_s_settings(engine: Any, spark: SparkSession) -> None:
    """FAIR scheduling, UTC, no web page unless it is asked for."""
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.scheduler.mode") == "FAIR"
    assert engine.url is None


async def test_the_guard_of_the_event_loop(engine: Any) -> None:
    """What the worker asks the JVM in the event loop is caught by these tests; what they ask is not."""
    jvm, loop = engine._backend.jvm, asyncio.get_running_loop()
    assert jvm._ask() > 0
    caught = loop.create_future()
    loop.set_exception_handler(lambda _, context: caught.set_result(context["exception"]))
    loop.call_soon(jvm._ask)
    error = await caught
    loop.set_exception_handler(None)
    assert str(error).startswith("the JVM is asked in the event loop: worker/spark/classic/jvm.py:")
