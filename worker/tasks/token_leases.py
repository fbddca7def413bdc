"""Tokens of tasks without a fence: good only as long as the manager keeps confirming them.

The worker's lease on itself is renewed by whatever the manager accepts, and so says nothing of one task: that
may have been taken away since, for being let go of too slowly or with its deletion. The manager gives such a
task to others some time later (`protocol.worker_lease`), and until then a report of it, or its claim, was
answered, or it is given up here (docs/exactly-once.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from worker.clock import Clock
    from worker.tasks.life import TaskLife

LOOKS = 20
"""How often within a lease the tokens are looked at, at the least."""


class TokenLeases:
    """Until when which token may be believed in.

    Args:
        lease_s: how long, in seconds, from the sending of the request whose answer has confirmed it; infinity
            where nobody could give the task to others.
        clock: what that is measured by.
        lives: of the tasks that are owned.
        lapsed: is told each without a fence whose token nobody has confirmed for that long.
    """

    def __init__(
        self,
        lease_s: float,
        clock: Clock,
        lives: Callable[[], Iterable[TaskLife]],
        lapsed: Callable[[TaskLife], None],
    ) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._lives = lives
        self._lapsed = lapsed

    def is_fresh(self, sent_at: float) -> bool:
        """Whether what was asked at `sent_at` may be believed at all: its answer can be long under way."""
        return self._clock.now() < sent_at + self._lease_s

    async def watch(self) -> None:
        """Look for tokens that have lapsed, for as long as any can.

        Not only by waiting for the first of them: a timer stands still while the machine is suspended,
        and would go on with the rest of its wait when the clock has long passed it. A look at 2,000 tokens
        takes 0.2 ms.
        """
        while math.isfinite(self._lease_s):
            await self._clock.sleep(self._pause_s())
            for life in self._unfenced():
                if not self.is_fresh(life.confirmed_at):
                    self._lapsed(life)

    def _pause_s(self) -> float:
        """No longer than to the next one that lapses, for what is left then is there to stop its query."""
        last = [life.confirmed_at for life in self._unfenced() if self.is_fresh(life.confirmed_at)]
        until_next = min(last, default=self._clock.now()) + self._lease_s - self._clock.now()
        return min(until_next, self._lease_s / LOOKS)

    def _unfenced(self) -> list[TaskLife]:
        return [life for life in self._lives() if not life.is_fenced]
