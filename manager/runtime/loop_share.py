"""What requests may take of one pass of the event loop: no heartbeat is to wait for a thousand claims.

A pass runs everything that is ready, in order, and looks at the clock and at sockets only then:
when a thousand members ask for something at once, a pass is as long as all of that takes. So requests that
come when their share of a pass is used up wait for one of the next passes; heartbeats wait before the others,
which have a pass now and then however many heartbeats there are.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SHARE_S: Final = 0.01
"""Of one pass, in seconds, from its first request on; whoever has begun by then is not interrupted."""
URGENT_AT_ONCE: Final = 16
"""Heartbeats that are let go together: each takes about 0.1 ms."""
URGENT_PASSES: Final = 10
"""In a row that heartbeats may have while others wait; then one of those goes on as well."""
MOST_WAITING: Final = 20_000
"""Requests in each of the two lines, those that have given up included; more are refused."""

Line = deque["asyncio.Future[None]"]


Turn = TypeVar("Turn")


def for_one_pass(turns: Iterable[Turn], now: Callable[[], float] = time.monotonic) -> Iterator[Turn]:
    """Those of `turns` for which there is time in one pass, one at the least; `now` is the time, in seconds.

    A thousand groups that were taken up together have their timers run out together. What is left is as due
    in the next pass.
    """
    ends_at = now() + SHARE_S
    for turn in turns:
        yield turn
        if now() >= ends_at:
            return


class LoopShare:
    """Who may go on in this pass of the running loop, and who waits; `now` is the time, in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = 0.0
        self._is_counting = False
        self._urgent: Line = deque()
        self._patient: Line = deque()
        self._passed_over = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._urgent) + len(self._patient)

    def admits(self, *, urgent: bool) -> bool:
        """Whether a request may go on at once; else it has to `wait`."""
        if not self._is_counting:
            self._count()
            return True
        others = self._urgent if urgent else self._urgent or self._patient
        return not others and self._now() - self._began < SHARE_S

    def is_full(self, *, urgent: bool) -> bool:
        """Whether a request that may not go on is to be refused, before anything is done for it."""
        return len(self._urgent if urgent else self._patient) >= MOST_WAITING

    async def wait(self, *, urgent: bool) -> None:
        """Go on in a later pass, behind those that wait already; the urgent ones before all others."""
        future = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._patient).append(future)
        await future

    def _count(self) -> None:
        """What is scheduled now runs in the next pass."""
        self._is_counting = True
        self._began = self._now()
        asyncio.get_running_loop().call_soon(self._next_pass)

    def _next_pass(self) -> None:
        gone = _let_go(self._urgent, URGENT_AT_ONCE)
        self._passed_over = self._passed_over + 1 if gone and self._patient else 0
        if not gone or self._passed_over > URGENT_PASSES:
            self._passed_over = 0
            gone += _let_go(self._patient, 1)
        if gone:
            self._count()
        else:
            self._is_counting = False


def _let_go(line: Line, most: int) -> int:
    """Have the first ones of a line go on; how many. Those whose connections are gone do not count."""
    gone = 0
    while line and gone < most:
        future = line.popleft()
        if not future.done():
            future.set_result(None)
            gone += 1
    return gone
