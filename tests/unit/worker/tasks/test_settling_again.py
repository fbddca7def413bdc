"""When the sink of a paused task is told once more, and when never again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.turns import until
from tests.unit.worker.tasks.bench import grant
from worker.query_engine import QueryError
from worker.tasks import life
from worker.tasks.settling import AGAIN

if TYPE_CHECKING:
    from tests.unit.worker.tasks.bench import Bench


class Delays:
    """Before another try, as they were asked for."""

    def __init__(self) -> None:
        self.s: list[float] = []

    def delay_s(self, tries: int, chance: float) -> float:
        """The worker's own."""
        self.s.append(AGAIN.delay_s(tries, chance))
        return self.s[-1]


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> Delays:
    """What the worker waits for before another try."""
    asked = Delays()
    monkeypatch.setattr(life, "AGAIN", asked)
    return asked


async def paused(bench: Bench, **what: object) -> None:
    """A paused task of which the manager has been told why it is not settled."""
    grant(bench, target="PAUSED", **what)
    bench.assign("t1")
    await until(lambda: any(report.cause for report in bench.manager.reports("t1")))


async def test_a_sink_that_does_not_answer_is_asked_more_and_more_seldom(
    bench: Bench, delays: Delays
) -> None:
    """Twice as long each time, to a minute: paused tasks must not keep a database down."""
    bench.engine.broken["t1"] = "no such host"
    await paused(bench)
    await bench.clock.advance(sum((1, 2, 4, 8, 16, 32, 60)))
    assert delays.s == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize("why", ["a newer token", "for good", "an unreadable definition"])
async def test_nothing_is_tried_again_that_comes_to_the_same(why: str, bench: Bench, delays: Delays) -> None:
    """A sink that has seen a newer token will not take this one later, either."""
    if why == "an unreadable definition":
        await paused(bench, sinc={})
    else:
        bench.engine.surprise = QueryError(why, fenced=why == "a newer token", permanent=why == "for good")
        await paused(bench)
    bench.engine.surprise = None
    await bench.clock.advance(10 * AGAIN.limit_s)
    assert (bench.engine.settled, delays.s) == ([], [])
    assert bench.manager.states("t1") == ["PAUSED"]
