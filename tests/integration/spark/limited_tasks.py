"""Tasks that go beyond a limit of their definition, as the manager hears of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.unit.worker.tasks.bench import Bench, grant
from worker.background import BackgroundTasks

if TYPE_CHECKING:
    from protocol.messages.ownership import TaskReport
    from worker.query_engine import QueryEngine

PATIENCE_S = 240
REVISION = 7


async def quarantine_asked_for(engine: QueryEngine, **definition: Any) -> TaskReport:
    """The report in which a worker with that engine asks that nobody be given the task any more."""
    async with BackgroundTasks() as background:
        bench = Bench(background, engine=engine)
        grant(bench, revision=REVISION, **definition)
        bench.assign("t1")
        async with asyncio.timeout(PATIENCE_S):
            while not (told := bench.manager.reports("t1")) or not told[-1].quarantine:
                assert not {"RESTARTING", "FAILED"} & {*bench.manager.states("t1")}, told[-1].cause
                await bench.clock.advance(1)
                await asyncio.to_thread(int)
        return told[-1]
