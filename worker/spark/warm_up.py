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
COPIED: Final = "SELECT value AS digit, 1 AS n FROM source"
COUNTED: Final = "SELECT value % 10 AS digit, COUNT(*) AS n FROM source GROUP BY value % 10"


async def warm_up(
    start: Callable[[QuerySpec, SparkSettings], Awaitable[Query]], settings: SparkSettings
) -> None:
    """Run it twice, within `settings.warm_up_s` seconds; whatever comes of it, the worker goes on.

    Args:
        start: starts a query with other settings than the engine's own.
        settings: the engine's.
    """
    began = time.monotonic()
    try:
        with TemporaryDirectory(prefix="sparkherd-warm-up-", ignore_cleanup_errors=True) as folder:
            own = msgspec.structs.replace(settings, checkpoint_root=f"file:{folder}/checkpoints")
            async with asyncio.timeout(settings.warm_up_s):
                for token in TOKENS:
                    await _end_of(await start(_spec(folder, token, settings), own))
    except TimeoutError:
        log.warning("spark is not warm yet, the first queries are slower", after_s=settings.warm_up_s)
    except Exception as error:  # noqa: BLE001 - what is wrong with Spark is told by the tasks that need it
        log.warning("spark could not be warmed, the first queries are slower", why=str(error))
    else:
        log.info("spark is warm", after_s=round(time.monotonic() - began, 1))


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
