from __future__ import annotations

import pytest

from tests.simulation.history import History

HISTORIES = 60


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_the_invariants_hold_through_any_history(seed: int) -> None:
    """Crashes, lost and doubled messages, cut connections, liars: one owner a token, and order in the end."""
    figures = History(seed).run()
    assert figures.requests > 0


def test_a_seed_is_a_history() -> None:
    """The same seed gives the same steps, so that a failing one can be looked at again."""
    assert History(7).run() == History(7).run()
