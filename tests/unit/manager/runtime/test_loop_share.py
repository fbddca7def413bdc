"""However much comes at once, a pass of the event loop has an end, and heartbeats go first."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from manager.runtime.loop_share import SHARE_S, URGENT_AT_ONCE, URGENT_PASSES, LoopShare, for_one_pass
from tests.fakes.turns import turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Requests:
    """Some that take so many seconds each, by a clock of their own; in which pass each was done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.passes = 0
        self.done: list[tuple[str, int]] = []
        self.share = LoopShare(lambda: self.now)
        self._tasks: list[asyncio.Task[None]] = []
        self._count()

    def _count(self) -> None:
        self.passes += 1
        asyncio.get_running_loop().call_soon(self._count)

    def ask(self, name: str, seconds: float, *, urgent: bool = False) -> asyncio.Task[None]:
        """One more."""
        self._tasks.append(asyncio.create_task(self._serve(name, seconds, urgent=urgent)))
        return self._tasks[-1]

    async def _serve(self, name: str, seconds: float, *, urgent: bool) -> None:
        if not self.share.admits(urgent=urgent):
            await self.share.wait(urgent=urgent)
        self.now += seconds
        self.done.append((name, self.passes))

    async def passed(self, passes: int) -> None:
        """So many passes go by, or a few more."""
        until = self.passes + passes
        while self.passes < until:
            await turn()

    def of_a_pass(self) -> dict[int, int]:
        """How many were done in each."""
        return {number: sum(1 for _, each in self.done if each == number) for _, number in self.done}


@pytest.fixture
async def requests() -> AsyncIterator[Requests]:
    made = Requests()
    yield made
    await made.passed(200)


async def test_what_comes_alone_waits_for_nobody(requests: Requests) -> None:
    """However long the one before it took, which is over."""
    for name in "abc":
        requests.ask(name, 10 * SHARE_S)
        await requests.passed(3)
    assert [name for name, _ in requests.done] == ["a", "b", "c"]
    assert len(requests.share) == 0


async def test_small_ones_are_done_together(requests: Requests) -> None:
    """As many as the share of a pass is enough for."""
    for number in range(50):
        requests.ask(str(number), SHARE_S / 100)
    await requests.passed(2)
    assert len(requests.done) == 50


async def test_of_large_ones_a_pass_has_one_and_they_keep_their_order(requests: Requests) -> None:
    """Between any two of them the loop looks at its timers and sockets."""
    for number in range(20):
        requests.ask(str(number), SHARE_S)
    await requests.passed(1)
    requests.ask("later", 0)
    await requests.passed(50)
    assert [name for name, _ in requests.done] == [*map(str, range(20)), "later"]
    passes = [number for _, number in requests.done]
    assert all(before < after for before, after in pairwise(passes))


async def test_a_heartbeat_waits_for_one_of_the_others_at_most(requests: Requests) -> None:
    """And not behind all that came before it."""
    for number in range(20):
        requests.ask(str(number), SHARE_S)
    await requests.passed(4)
    before = len(requests.done)
    requests.ask("beat", 0, urgent=True)
    await requests.passed(4)
    names = [name for name, _ in requests.done]
    assert names.index("beat") <= before + 1


async def test_a_thousand_heartbeats_have_several_passes_and_nobody_starves(requests: Requests) -> None:
    """Those that wait go on some at a time, and what is not urgent after them."""
    requests.ask("large", SHARE_S)
    requests.ask("patient", 0)
    for number in range(100):
        requests.ask(str(number), SHARE_S / 100, urgent=True)
    await requests.passed(50)
    assert max(requests.of_a_pass().values()) <= URGENT_AT_ONCE
    assert requests.done[-1][0] == "patient"
    assert len(requests.done) == 102


async def test_a_flood_of_heartbeats_that_never_ends_starves_nobody(requests: Requests) -> None:
    """Others have a pass now and then, one each."""
    for name in ("large", "patient", "patient too"):
        requests.ask(name, SHARE_S)
    for _ in range(4 * URGENT_PASSES):
        for _ in range(4 * URGENT_AT_ONCE):
            requests.ask("beat", SHARE_S / 10, urgent=True)
        await requests.passed(1)
    assert len(requests.share) > URGENT_AT_ONCE
    done = dict(requests.done)
    assert done["patient"] + URGENT_PASSES <= done["patient too"]


async def test_whoever_gives_up_keeps_nobody_waiting(requests: Requests) -> None:
    """Its connection is gone: the next one has its place."""
    requests.ask("large", SHARE_S)
    requests.ask("large too", SHARE_S)
    given_up = requests.ask("gone", SHARE_S)
    requests.ask("next", 0)
    await requests.passed(1)
    given_up.cancel()
    await requests.passed(6)
    assert [name for name, _ in requests.done] == ["large", "large too", "next"]
    assert len(requests.share) == 0


def test_what_runs_out_together_is_carried_out_in_as_many_passes_as_it_takes() -> None:
    """A thousand groups have their timers in the same millisecond; a long turn is the last of its pass."""
    seconds = [SHARE_S / 3] * 8 + [SHARE_S * 2] * 2
    spent: list[float] = []
    turns = map(spent.append, seconds)
    lengths = [len(tuple(for_one_pass(turns, lambda: sum(spent)))) for _ in range(5)]
    assert lengths == [3, 3, 3, 1, 0]
    assert spent == seconds
