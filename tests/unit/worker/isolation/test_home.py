from __future__ import annotations

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import eventually
from worker.isolation import home as home_module
from worker.isolation.home import HomeSpark
from worker.query_engine import QueryError, SparkKind
from worker.waiting import Backoff

KIND = SparkKind("4.1.1", None)  # type: ignore[arg-type]  # which formats is nobody's question here


class Made:
    """The engines that were made; those in `broken` cannot be opened."""

    def __init__(self, broken: int = 0) -> None:
        self.engines: list[FakeEngine] = []
        self._broken = iter([False, *[True] * broken])

    def __call__(self) -> FakeEngine:
        engine = FakeEngine()
        engine.kind = KIND
        engine.cannot_open = "no java" if next(self._broken, False) else None
        self.engines.append(engine)
        return engine


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "AGAIN", Backoff(first_s=0.0, limit_s=0.0))


async def test_a_spark_that_dies_is_opened_again() -> None:
    """As often as it takes; which Spark it is stays known."""
    made = Made(broken=2)
    home = HomeSpark(made)
    await home.open()
    made.engines[0].die("killed")
    await eventually(lambda: home.engine is not made.engines[0])
    assert home.engine is made.engines[3]
    assert [engine.is_open for engine in made.engines] == [False, False, False, True]
    assert home.kind is KIND
    await home.close()
    assert not made.engines[3].is_open


async def test_one_that_cannot_be_opened_at_all_ends_the_worker() -> None:
    """With what to change."""
    engine = FakeEngine()
    engine.cannot_open = "install Java"
    home = HomeSpark(lambda: engine)
    with pytest.raises(QueryError, match="install Java"):
        await home.open()
    await home.close()


async def test_one_that_dies_again_and_again_is_opened_ever_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would take a processor for good; one that has lived for a while is opened at once."""
    monkeypatch.setattr(home_module, "AGAIN", Backoff(first_s=1.0, limit_s=60.0, jitter=0.0))
    made, clock = Made(), FakeClock()
    home = HomeSpark(made, clock)
    await home.open()
    opened: list[float] = []
    for _ in range(4):
        made.engines[-1].die("out of memory")
        before = clock.now()
        while len(made.engines) == len(opened) + 1:
            await clock.advance(1)
        opened.append(clock.now() - before)
    assert opened == [1, 1, 2, 4]
    await clock.advance(60)
    made.engines[-1].die("killed")
    await eventually(lambda: len(made.engines) == 6)
    await home.close()


async def test_whatever_keeps_it_from_coming_up_it_is_tried_again() -> None:
    """A machine may have no room for a thread for a while."""
    made = Made(broken=1)
    home = HomeSpark(made)
    await home.open()

    async def fail() -> None:
        raise RuntimeError("can't start new thread")

    made.engines[0].close = fail  # type: ignore[method-assign]
    made.engines[0].die("killed")
    await eventually(lambda: home.engine is not made.engines[0])
    assert home.engine is made.engines[2]
    await home.close()
