"""A small query on a Spark that has just come up, before the worker joins.

The first query of a JVM loads some thousand classes and runs them uncompiled. A task that moves from a worker
whose JVM is warm would stand still meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from definition.document import parse_definition
from worker.query_engine import QuerySpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.query_engine import Query
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

NAME: Final = "~warm-up"
"""Of its group and its task: no other has a `~`."""
TOKENS: Final = (1, 2)
"""It is started a second time as a task that moves is: from a checkpoint, and over a fence of before."""
STOP_S: Final = 5.0
"""How long the end of a query may take for which there is no more time."""
_left_behind: Final[set[asyncio.Future[None]]] = set()
"""What nobody waits for: the event loop keeps no task that nobody refers to."""
COPIED: Final = "SELECT value AS digit, 1 AS n FROM source"
COUNTED: Final = "SELECT value % 10 AS digit, COUNT(*) AS n FROM source GROUP BY value % 10"


async def warm_up(
    start: Callable[[QuerySpec, SparkSettings], Awaitable[Query]], settings: SparkSettings
) -> None:
    """Run it twice, within `settings.warm_up_s` seconds; whatever comes of it, the worker goes on.

    What has begun then, and cannot be ended within `STOP_S` seconds, is left to itself.

    Args:
        start: starts a query with other settings than the engine's own.
        settings: the engine's.
    """
    began = time.monotonic()
    running = asyncio.ensure_future(_run_twice(start, settings))
    await asyncio.wait({running}, timeout=settings.warm_up_s)
    if not running.done():
        log.warning("spark is not warm yet, the first queries are slower", after_s=settings.warm_up_s)
        _left_behind.add(running)
        running.add_done_callback(_let_go)
        running.cancel()
        await asyncio.wait({running}, timeout=STOP_S)
    elif (error := running.exception()) is not None:  # what is wrong is told by the tasks that need Spark
        why = str(error).partition("\n")[0]
        log.warning("spark could not be warmed, the first queries are slower", why=why)
    else:
        log.info("spark is warm", after_s=round(time.monotonic() - began, 1))


def _let_go(ended: asyncio.Future[None]) -> None:
    """Nobody wants to know how it has ended."""
    _left_behind.discard(ended)
    if not ended.cancelled():
        ended.exception()


async def _run_twice(
    start: Callable[[QuerySpec, SparkSettings], Awaitable[Query]], settings: SparkSettings
) -> None:
    with TemporaryDirectory(prefix="sparkherd-warm-up-", ignore_cleanup_errors=True) as folder:
        own = msgspec.structs.replace(settings, checkpoint_root=f"file:{folder}/checkpoints")
        for token in TOKENS:
            await _end_of(await start(_spec(folder, token, settings), own))


def _spec(folder: str, token: int, settings: SparkSettings) -> QuerySpec:
    """With a state, unless executors on other machines would keep that where the next one does not see it."""
    definition: dict[str, Any] = {
        "source": {"format": "rate-micro-batch", "options": {"rowsPerBatch": 10}},
        "sql": COUNTED if settings.master.startswith("local") else COPIED,
        "sink": {
            "format": "sql",
            "options": {
                "url": f"sqlite:///{folder}/sink.db",
                "table": "digits",
                "mode": "upsert",
                "key": ["digit"],
            },
        },
        "output_mode": "update",
        "trigger": {"available_now": True},
    }
    return QuerySpec(NAME, NAME, token, parse_definition(msgspec.json.encode(definition)))


async def _end_of(query: Query) -> None:
    """Wait for it; raises what it has failed of."""
    try:
        if (error := await query.ended()) is not None:
            raise error
    finally:
        await asyncio.wait({asyncio.ensure_future(query.stop(0))}, timeout=STOP_S)
