"""What either backend of Spark does with a checkpoint that does not know how far its task has come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.tasks import Reached
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from worker.spark.engine import SparkEngine


async def refuses_one_that_is_behind(
    engine: SparkEngine, start: Any, spec: Any, flights: Any, database: Any
) -> None:
    """For good, before the fence is raised: the former token may still write."""
    flights.add(files=2)
    definition = {"source": flights.source, "sink": database.sink(), "trigger": {"available_now": True}}
    first = await start(token=1, **definition)
    assert await first.ended() is None
    later = replace(spec("t", 2, **definition), reached=Reached(2, "/elsewhere/g/t", "w1"))
    with pytest.raises(QueryError, match="ends with batch 1, but the task has come to batch 2") as refused:
        await engine.start(later)
    assert refused.value.permanent
    flights.add()
    again = await start(token=1, **definition)
    assert await again.ended() is None
    reached = Reached(2, again.checkpoint, "w1")
    last = await engine.start(replace(spec("t", 3, **definition), reached=reached))
    assert await last.ended() is None
    assert database.ids() == flights.ids
