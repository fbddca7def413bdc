"""Tokens: without a fence, good for as long as the manager confirms them (docs/exactly-once.md).

The worker's lease on itself is renewed by whatever the manager accepts, and so says nothing of one task: that
may have been taken away since, for being let go of too slowly or with its deletion. The manager gives such a
task to others one session timeout later, and until then a report of it, or its claim, was answered, or it is
given up here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.clock import Clock

LOOKS = 20
"""How often within a lease the tokens are looked at."""


class Tokens:
    """Until when which token may be believed in.

    Args:
        lease_s: how long, in seconds, from the sending of the request whose answer has confirmed it; infinity
            where nobody could give the task to others.
        clock: what that is measured by.
        lapsed: is told each task and token that nobody has confirmed for that long.
    """

    def __init__(self, lease_s: float, clock: Clock, lapsed: Callable[[str, int], None]) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._lapsed = lapsed
        self._until: dict[str, tuple[int, float]] = {}

    def is_fresh(self, sent_at: float) -> bool:
        """Whether what was asked at `sent_at` may be believed at all: its answer can be long under way."""
        return self._clock.now() < sent_at + self._lease_s

    def believe(self, task: str, token: int, sent_at: float) -> None:
        """The manager has granted it, or granted it again."""
        known, until = self._until.get(task, (token, sent_at))
        since = sent_at + self._lease_s
        self._until[task] = (token, max(until, since) if known == token else since)

    def confirm(self, task: str, token: int, sent_at: float) -> None:
        """The manager has accepted a report under it."""
        if self._until.get(task, (None, 0))[0] == token:
            self.believe(task, token, sent_at)

    async def watch(self) -> None:
        """Look for tokens that have lapsed, for as long as any can.

        By looking, not by waiting for the first of them: a timer stands still while the machine is suspended,
        and would go on with the rest of its wait when the clock has long passed it. A look at 2,000 tokens
        takes 0.2 ms.
        """
        while math.isfinite(self._lease_s):
            await self._clock.sleep(self._lease_s / LOOKS)
            now = self._clock.now()
            for task, (token, until) in tuple(self._until.items()):
                if until <= now:
                    del self._until[task]
                    self._lapsed(task, token)
