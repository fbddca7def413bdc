"""The rule of tokens by itself: until when each is believed in, and how soon it is found to have lapsed."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from worker.tasks.token_leases import LOOKS, TokenLeases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.tasks.life import TaskLife

LEASE_S = 9.0
LOOK_S = LEASE_S / LOOKS


class Machine(FakeClock):
    """A machine that can be suspended: `CLOCK_BOOTTIME` goes on meanwhile, and timers do not."""

    def suspend(self, seconds: float) -> None:
        """It stands still for so long."""
        self._now += seconds
        self._sleepers = [(time + seconds, sleeper) for time, sleeper in self._sleepers]


class Watched:
    """TokenLeases that are watched by a clock of the test's, and which of them have lapsed."""

    def __init__(self) -> None:
        self.clock = Machine()
        self.lives: list[Any] = []
        self.lapsed: list[str] = []
        self.leases = TokenLeases(LEASE_S, self.clock, lambda: self.lives, self._on_lapsed)

    def believe(self, task: str, confirmed_at: float, *, is_fenced: bool = False) -> None:
        """A token is granted that counts from then."""
        self.lives.append(SimpleNamespace(task=task, confirmed_at=confirmed_at, is_fenced=is_fenced))

    def _on_lapsed(self, life: TaskLife) -> None:
        self.lapsed.append(life.task)
        self.lives.remove(life)


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    watching = asyncio.create_task(watched.leases.watch())
    yield watched
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_a_token_lapses_with_its_lease(watched: Watched) -> None:
    """Not by the next look: what is left of the time is there to stop its query. A fence needs no lease."""
    watched.believe("t", watched.clock.now() + LOOK_S / 2)
    watched.believe("fenced", watched.clock.now(), is_fenced=True)
    await watched.clock.advance(LEASE_S + LOOK_S / 4)
    assert watched.lapsed == []
    await watched.clock.advance(LOOK_S / 2)
    assert watched.lapsed == ["t"]


async def test_a_machine_that_was_suspended_finds_out_at_once(watched: Watched) -> None:
    """Its timers have stood still with it: a wait for the end of the lease would go on for the rest of it."""
    watched.believe("t", watched.clock.now())
    await watched.clock.advance(LOOK_S)
    watched.clock.suspend(LEASE_S)
    await watched.clock.advance(LOOK_S)
    assert watched.lapsed == ["t"]


async def test_a_grant_that_was_long_under_way_lapses_the_sooner(watched: Watched) -> None:
    """It counts from when it was asked for, whatever else is believed in for longer."""
    watched.believe("young", watched.clock.now())
    await watched.clock.advance(LOOK_S)
    watched.believe("old", watched.clock.now() - LEASE_S + 2 * LOOK_S)
    await watched.clock.advance(3 * LOOK_S)
    assert watched.lapsed == ["old"]
