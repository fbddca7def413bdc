"""Looking at what a worker takes of its machine, every few seconds."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import structs

from telemetry.cause_ids import new_cause_id
from worker.malloc_arenas import give_back_free_memory
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.messages.resources import WorkerResources
    from worker.clock import Clock
    from worker.query_engine import QueryEngine

log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 10.0
LOOKS_TO_GIVE_BACK: Final = 6
"""Looks from one time that memory is given back to the next."""


class ResourceWatch:
    """Looks, keeps what was seen last, and passes it on; gives back memory that is free from time to time.

    Args:
        engine: what is asked.
        group: whose checkpoints are looked at.
        loop_lag: how late the event loop was at most since it was asked before, in seconds.
        clock: sleeps between two looks.
        tell: is given each look.
        give_back: gives back memory of the process that is free, in a thread.
    """

    def __init__(
        self,
        engine: QueryEngine,
        group: str,
        *,
        loop_lag: Callable[[], float],
        clock: Clock,
        tell: Callable[[WorkerResources], Awaitable[object]],
        give_back: Callable[[], None] = give_back_free_memory,
    ) -> None:
        self.seen: WorkerResources | None = None
        self._engine = engine
        self._group = group
        self._loop_lag = loop_lag
        self._clock = clock
        self._tell = tell
        self._give_back = give_back

    async def run(self) -> None:
        """Look, for ever."""
        for look in itertools.count(1):
            self.seen = await self._look()
            if self.seen is not None:
                await self._tell(self.seen)
            if look % LOOKS_TO_GIVE_BACK == 0:
                with contextlib.suppress(RuntimeError):  # no room for a thread: another time there is
                    await asyncio.to_thread(self._give_back)
            await self._clock.sleep(LOOK_EVERY_S)

    async def _look(self) -> WorkerResources | None:
        try:
            seen = await self._engine.resources(self._group)
        except QueryError as error:
            log.debug("what the engine takes is not known", why=str(error))
            return None
        except Exception:  # a machine without room for a thread, say: what is only told ends no worker
            log.exception("bug: what the engine takes is not known", cause_id=new_cause_id())
            return None
        return seen and structs.replace(seen, loop_lag_ms=round(self._loop_lag() * 1000))
