"""The rule of tokens by itself: until when each is believed in, and how soon it is found to have lapsed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from worker.keeper.tokens import LOOKS, Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LEASE_S = 9.0
LOOK_S = LEASE_S / LOOKS


class Machine(FakeClock):
    """A machine that can be suspended: `CLOCK_BOOTTIME` goes on meanwhile, and timers do not."""

    def suspend(self, seconds: float) -> None:
        """It stands still for so long."""
        self._now += seconds
        self._sleepers = [(time + seconds, sleeper) for time, sleeper in self._sleepers]


class Watched:
    """Tokens that are watched by a clock of the test's, and which of them have lapsed."""

    def __init__(self) -> None:
        self.clock = Machine()
        self.lapsed: list[tuple[str, int]] = []
        self.tokens = Tokens(LEASE_S, self.clock, lambda task, token: self.lapsed.append((task, token)))


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    watching = asyncio.create_task(watched.tokens.watch())
    yield watched
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_an_answer_that_was_overtaken_takes_nothing_back(watched: Watched) -> None:
    """A claim's answer that comes after that to a later report makes the token's time no shorter."""
    claimed_at = watched.clock.now()
    watched.tokens.believe("t", 1, claimed_at)
    await watched.clock.advance(LEASE_S / 2)
    watched.tokens.confirm("t", 1, watched.clock.now())
    watched.tokens.believe("t", 1, claimed_at)
    await watched.clock.advance(LEASE_S - LOOK_S)
    assert watched.lapsed == []
    await watched.clock.advance(2 * LOOK_S)
    assert watched.lapsed == [("t", 1)]


async def test_a_machine_that_was_suspended_finds_out_at_once(watched: Watched) -> None:
    """Its timers have stood still with it: a wait for the end of the lease would go on for the rest of it."""
    watched.tokens.believe("t", 1, watched.clock.now())
    await watched.clock.advance(LOOK_S)
    watched.clock.suspend(LEASE_S)
    await watched.clock.advance(LOOK_S)
    assert watched.lapsed == [("t", 1)]


async def test_a_grant_that_was_long_under_way_lapses_the_sooner(watched: Watched) -> None:
    """It counts from when it was asked for, whatever else is believed in for longer."""
    watched.tokens.believe("young", 1, watched.clock.now())
    await watched.clock.advance(LOOK_S)
    watched.tokens.believe("old", 1, watched.clock.now() - LEASE_S + 2 * LOOK_S)
    await watched.clock.advance(3 * LOOK_S)
    assert watched.lapsed == [("old", 1)]
