from __future__ import annotations

import pytest

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
