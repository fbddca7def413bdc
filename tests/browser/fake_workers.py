"""Workers that speak the protocol and run nothing: `python -m tests.browser.fake_workers URL GROUP NAME…`."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from protocol.messages.quarantine import QuarantineAnswer, QuarantinedRow
from protocol.messages.resources import WorkerResources
from tests.fakes.query_engine import FakeEngine
from worker.daemon import run
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

TICK_S = 0.5
BROKEN = "broken"
CAUSE = (
    "[PATH_NOT_FOUND] Path does not exist: file:/data/weather.\n"
    "  at org.apache.spark.sql.errors.QueryCompilationErrors$.dataPathNotExistError\n"
    "  at org.apache.spark.sql.execution.datasources.DataSource$.$anonfun$checkAndGlobPathIfNecessary$4"
)
AT_MS = int(time.time() * 1000) - 240_000
"""Some minutes ago."""


def put_aside(nth: int, **told: Any) -> QuarantinedRow:
    """A row of batch 41."""
    return QuarantinedRow(id=f"0-41-{nth}", batch_id=41, token=7, at_ms=AT_MS, **told)


ROWS = (
    put_aside(
        0,
        reason="violation",
        name="possible",
        error="possible is violated: delay BETWEEN -120 AND 3000",
        form="row",
        raw='{"carrier":"UA","flight":1545,"origin":"EWR","delay":99999.0}',
    ),
    put_aside(
        1,
        reason="unreadable",
        name="source.value",
        error="source.value: cannot be taken apart as json",
        form="kafka",
        raw='{"carrier": "B6", "flight": 725, "delay": "unknown"}',
        origin={"topic": "flights", "partition": 3, "offset": 80412},
    ),
    put_aside(
        2,
        reason="refused",
        name="sink",
        error='null value in column "carrier" of relation "delays" violates not-null constraint',
        form="row",
        raw='{"flight":461,"origin":"LGA","delay":-6.0}',
    ),
)


TAKES = WorkerResources(
    heap_bytes=243_900_000,
    heap_max_bytes=1_073_741_824,
    heap_after_gc_bytes=185_400_000,
    gc_ms=4310,
    gc_share=0.012,
    direct_bytes=16_842_752,
    python_processes=3,
    python_bytes=310_000_000,
    checkpoint_bytes=2_400_000,
    checkpoint_free_bytes=80_000_000_000,
    checkpoint_disk_bytes=250_000_000_000,
)


class TickingEngine(FakeEngine):
    """Its queries finish a batch every half a second; the task `broken` cannot be started."""

    def __init__(self) -> None:
        super().__init__()
        self.broken[BROKEN] = CAUSE
        self.quarantine_answer = QuarantineAnswer(rows=ROWS, total=len(ROWS), replayed=2, stayed=1)
        self.takes = TAKES
        self._batch = 0

    @property
    def url(self) -> str | None:
        """Where Spark would show itself."""
        return "http://127.0.0.1:4040"

    async def open(self) -> None:
        """Begin to tick."""
        await super().open()
        self._tick()

    def _tick(self) -> None:
        self._batch += 1
        for number, query in enumerate(self.started):
            if query.is_running:
                rows = 40 + 7 * (self._batch % 5)
                told: dict[str, Any] = {"rows": rows, "total_rows": 40 * self._batch, "batch_ms": 80 + rows}
                told["phases_ms"] = {"planning": 12, "reading": 4, "writing": 40 + rows, "commit": 20}
                told["state"] = {"rows": 100 * rows, "bytes": 9000, "memory_bytes": 40_000 * (number + 1)}
                query.advance(self._batch, rows_per_second=rows, **told)
        asyncio.get_running_loop().call_later(TICK_S, self._tick)


async def work(url: str, group: str, names: Sequence[str]) -> None:
    """All of them in one loop."""
    async with asyncio.TaskGroup() as workers:
        for name in names:
            settings = WorkerSettings(
                manager=(url,),
                group=group,
                client_id=name,
                session_timeout_ms=60_000,
                status_listen="127.0.0.1:0",
            )
            workers.create_task(run(settings, lambda *_: TickingEngine(), lambda _: None))


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], sys.argv[3:]))
