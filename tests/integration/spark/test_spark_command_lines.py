"""What everybody on the machine can read of the processes that a worker starts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
HUSH = "hush-4711"
STARTED = """
import asyncio, json, os, pathlib, sys, tempfile, threading
from definition.document import parse_definition
from worker.query_engine import QuerySpec
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

HUSH, ROOT = sys.argv[1:]
CONF = {
    "spark.hadoop.fs.s3a.secret.key": HUSH,
    "spark.tested.plain": f" of {HUSH}=\\u00e4\\\\n#:! ",
    "spark.tested.lines": "one\\ntwo",
    "spark.driver.memory": "600m",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dtested.one={HUSH} '-Dtested.two=a \\"b\\" c'",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}
SQL = {"source": {"format": "rate"}, "sink": {"format": "noop"}, "trigger": {"available_now": True}}
told, over = set(), threading.Event()

def read(path):
    try:
        return path.read_bytes().replace(b"\\0", b" ").decode()
    except OSError:  # it is over
        return ""

def descendants(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        for child in read(task / "children").split():
            yield child
            yield from descendants(child)

def watch():
    while not over.wait(0.001):
        look()

def lines(pid):
    return {read(pathlib.Path(f"/proc/{pid}/{name}")) for name in ("cmdline", "environ")}

def look():
    own = lines(os.getpid())  # a process that is just being forked still has them
    for pid in descendants(os.getpid()):
        told.update(lines(pid) - own)

async def main():
    watching = threading.Thread(target=watch)
    watching.start()
    engine = SparkEngine(SparkSettings(app_name="told", checkpoint_root=ROOT, conf=CONF), lambda: True)
    await engine.open()
    query = await engine.start(QuerySpec("g", "t", 1, parse_definition(json.dumps(SQL).encode())))
    await query.ended()
    spark = engine._backend.spark
    spark.sparkContext.parallelize([1]).map(str).collect()
    look()
    over.set()
    watching.join()
    java = spark._jvm.java.lang
    options = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    conf = spark.sparkContext.getConf()
    json.dump(
        {
            "told": sorted(told),
            "left": [str(each) for each in pathlib.Path(tempfile.gettempdir()).rglob("sparkherd-*")],
            "conf": {key: conf.get(key) for key in CONF},
            "wanted": CONF,
            "properties": [java.System.getProperty(f"tested.{each}") for each in ("one", "two")],
            "memory": java.Runtime.getRuntime().maxMemory(),
            "options": list(options),
            "command": java.System.getProperty("sun.java.command"),
        },
        sys.stdout,
    )
    await engine.close()

asyncio.run(main())
"""


async def test_no_setting_of_spark_is_in_a_command_line(tmp_path: Path) -> None:
    """Of none of the processes, at no time; Spark and its JVM have them all the same, and no file is left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTED, HUSH, str(tmp_path / "checkpoints")),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "SPARKHERD_SPARK_CONF": f"spark.tested.plain={HUSH}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told = json.loads(out.decode().splitlines()[-1])
    assert any("org.apache.spark.deploy.SparkSubmit" in each for each in told["told"])
    assert any("pyspark.daemon" in each for each in told["told"])
    assert [each for each in told["told"] if HUSH in each] == []
    assert HUSH not in told["command"]
    options = "spark.driver.extraJavaOptions"  # Spark puts some of its own before them
    assert told["conf"].pop(options).endswith(told["wanted"].pop(options))
    assert told["conf"] == told["wanted"]
    assert told["properties"] == [HUSH, 'a "b" c']
    assert told["memory"] < 620 << 20
    assert {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} <= set(told["options"])
    assert told["left"] == []
