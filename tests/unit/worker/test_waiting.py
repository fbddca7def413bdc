from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.waiting import MANAGER


def test_the_delays_of_the_protocol() -> None:
    """Protocol §7: 100 ms doubling to 1 s."""
    assert [MANAGER.delay_s(tries, 0.5) for tries in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1, 1])


@given(tries=st.integers(0, 10**9), chance=st.floats(0, 1, exclude_max=True))
def test_jitter_is_a_fifth_at_most(tries: int, chance: float) -> None:
    """However many tries there were, the delay stays within 20 % of what it would be."""
    middle = MANAGER.delay_s(tries, 0.5)
    assert 0.8 * middle - 1e-9 <= MANAGER.delay_s(tries, chance) <= 1.2 * middle
