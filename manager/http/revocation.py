"""What goes on after its request was let in goes on for as long as that would be let in again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from protocol.errors import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from manager.access.authorizer import Caller

    Judge = Callable[[], Caller | Failure]

LOOK_EVERY_S: Final = 1.0
"""As often as tokens are read: together, what is revoked goes on for two seconds at most."""


@asynccontextmanager
async def while_let_in(judge: Judge) -> AsyncGenerator[None]:
    """Breaks off what is done within as soon as `judge`, asked again and again, gives a failure."""
    try:
        async with asyncio.timeout(None) as limit:
            looks = _Looks(judge, limit)
            try:
                yield
            finally:
                looks.stop()
    except TimeoutError:
        if not limit.expired():
            raise


class _Looks:
    def __init__(self, judge: Judge, limit: asyncio.Timeout) -> None:
        self._judge = judge
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        if isinstance(self._judge(), Failure):
            self._limit.reschedule(self._loop.time())
        else:
            self._next = self._loop.call_later(LOOK_EVERY_S, self._look)

    def stop(self) -> None:
        self._next.cancel()
