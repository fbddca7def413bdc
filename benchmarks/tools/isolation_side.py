"""An engine of a worker's, with one JVM for all tasks or one for each, that is told what to do line by line.

    python -m benchmarks.tools.isolation_side shared|isolated FOLDER

`start N` starts so many tasks at once and says, as JSON, after how many seconds the last of them was started
and had committed its first batch; `stop` ends them, and says `{}`. It says `{}` when it is up, too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from definition.document import parse_definition
from worker.host import spark_engine
from worker.isolation.query import IsolatedQuery
from worker.query_engine import QuerySpec
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.query_engine import Query, QueryEngine

GROUP: Final = "bench"
CONF: Final = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
HEAP_MB: Final = 512
"""Of a task's own JVM; what all share, and the worker's own beside those of its tasks, have a gigabyte."""
LOOK_S: Final = 0.02


def say(told: Mapping[str, float]) -> None:
    """One line for whoever measures."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


class Side:
    """Starts and stops tasks, none of which ever had a checkpoint before."""

    def __init__(self, engine: QueryEngine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._number = 0
        self._queries: list[Query] = []

    async def start(self, tasks: int) -> Mapping[str, float]:
        """All at once; the seconds until the last of them was as far."""
        began = time.time()
        specs = [self._spec() for _ in range(tasks)]
        self._queries = list(await asyncio.gather(*map(self._engine.start, specs)))
        started = time.time()
        while not all(query.progress() for query in self._queries):  # noqa: ASYNC110 - nobody calls
            await asyncio.sleep(LOOK_S)
        return {"started": started - began, "first_batch": max(map(_first_commit, self._queries)) - began}

    async def stop(self) -> Mapping[str, float]:
        """All of them, until nothing is left of their processes: it would count as memory of the next."""
        await asyncio.gather(*(query.stop(30) for query in self._queries))
        await asyncio.gather(
            *(each.process_over for each in self._queries if isinstance(each, IsolatedQuery))
        )
        return {}

    def _spec(self) -> QuerySpec:
        self._number += 1
        name = f"t{self._number}"
        definition = {
            "source": {"format": "rate", "options": {"rowsPerSecond": 5}},
            "sql": "SELECT value FROM source",
            "sink": {
                "format": "sql",
                "options": {"url": f"sqlite:///{self._folder / name}.db", "table": "bench"},
            },
            "trigger": {"processing_time": "500 milliseconds"},
        }
        return QuerySpec(GROUP, name, 1, parse_definition(json.dumps(definition).encode()))


def _first_commit(query: Query) -> float:
    return (Path(str(query.checkpoint)) / "commits" / "0").stat().st_mtime


async def main(kind: str, folder: Path) -> None:
    """Do as told until there is nothing more."""
    is_isolated = kind == "isolated"
    settings = WorkerSettings(
        group=GROUP,
        checkpoint_root=str(folder / "checkpoints"),
        spark_conf=CONF,
        isolate=is_isolated,
        isolate_memory_mb=HEAP_MB if is_isolated else None,
    )
    engine = spark_engine(settings, lambda: True)
    side = Side(engine, folder)
    await engine.open()
    say({})
    while line := await asyncio.to_thread(sys.stdin.readline):
        order, _, tasks = line.strip().partition(" ")
        say(await side.start(int(tasks)) if order == "start" else await side.stop())
    await engine.close()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
