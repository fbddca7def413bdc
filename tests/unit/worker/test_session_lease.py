from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from worker.background import BackgroundTasks
from worker.session_lease import SessionLease

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Bench:
    """A lease of ten seconds and what it has told."""

    def __init__(self) -> None:
        self.clock = FakeClock(now=0.0)
        self.expiries: list[float] = []
        self.lease = SessionLease(10.0, self.clock, lambda: self.expiries.append(self.clock.now()))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A lease that is being watched."""
    bench = Bench()
    async with BackgroundTasks() as background:
        background.spawn(bench.lease.watch())
        yield bench


async def test_nobody_may_write_before_the_manager_accepted_anything(bench: Bench) -> None:
    """A lease is given, not assumed."""
    assert not bench.lease.may_write()
    await bench.clock.advance(60)
    assert bench.expiries == []


async def test_it_runs_from_when_the_request_was_sent(bench: Bench) -> None:
    """An answer that took long renews for less."""
    await bench.clock.advance(4)
    bench.lease.renew(sent_at=0.0)
    await bench.clock.advance(5.9)
    assert bench.lease.may_write()
    await bench.clock.advance(0.1)
    assert not bench.lease.may_write()
    assert bench.expiries == [10.0]


async def test_renewals_push_its_end_away(bench: Bench) -> None:
    """As long as the manager accepts something, nothing runs out."""
    for _ in range(20):
        bench.lease.renew(bench.clock.now())
        await bench.clock.advance(3)
    assert bench.expiries == []
    await bench.clock.advance(7)
    assert bench.expiries == [67.0]


async def test_an_older_request_takes_nothing_away(bench: Bench) -> None:
    """Answers may overtake one another."""
    await bench.clock.advance(5)
    bench.lease.renew(5.0)
    bench.lease.renew(1.0)
    await bench.clock.advance(9.9)
    assert bench.expiries == []


async def test_it_runs_out_once_and_can_be_had_again(bench: Bench) -> None:
    """Until then nothing may be written."""
    bench.lease.renew(0.0)
    await bench.clock.advance(30)
    assert bench.expiries == [10.0]
    bench.lease.renew(29.0)
    assert bench.lease.may_write()
    await bench.clock.advance(30)
    assert bench.expiries == [10.0, 39.0]


async def test_a_thawed_worker_finds_out_before_it_takes_an_answer_in(bench: Bench) -> None:
    """The answer lay in the socket while the process was frozen; the tasks are lost all the same."""
    bench.lease.renew(0.0)
    bench.clock.freeze(15)
    assert not bench.lease.may_write()
    bench.lease.renew(14.0)
    assert bench.expiries == [15.0]
    assert bench.lease.may_write()


async def test_an_answer_that_took_longer_than_the_lease_gives_none(bench: Bench) -> None:
    """A join may be parked for a minute; nothing was held, so nothing runs out."""
    await bench.clock.advance(60)
    bench.lease.renew(0.0)
    assert not bench.lease.may_write()
    await bench.clock.advance(60)
    assert bench.expiries == []


async def test_a_lease_given_up_does_not_run_out(bench: Bench) -> None:
    """Whoever has lost its tasks already is not told again."""
    bench.lease.renew(0.0)
    bench.lease.surrender()
    assert not bench.lease.may_write()
    await bench.clock.advance(60)
    assert bench.expiries == []
