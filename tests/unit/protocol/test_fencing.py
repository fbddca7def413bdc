"""The one rule of tokens: higher than the last one, and no lower than the second they are issued in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.fencing import CLOCK_ENDS, next_number

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("last", "now_ms", "following"),
    [
        (0, 0, 1),
        (7, -NOW_MS, 8),
        (0, NOW_MS, 1_800_000_000),
        (17, NOW_MS + 999, 1_800_000_000),
        (1_800_000_000, NOW_MS, 1_800_000_001),
        (4_102_444_800, NOW_MS, 4_102_444_801),
        (0, 2**62, CLOCK_ENDS),
        (CLOCK_ENDS, 2**62, CLOCK_ENDS + 1),
    ],
)
def test_the_clock_raises_the_count_and_never_lowers_it(last: int, now_ms: int, following: int) -> None:
    """A clock that stands, is behind, is right, was in the year 2100 once, or is beside itself."""
    assert next_number(last, now_ms) == following


@given(st.lists(st.tuples(st.integers(1, 10**9), st.booleans()), max_size=50))
def test_whoever_has_forgotten_issues_higher_numbers_all_the_same(steps: list[tuple[int, bool]]) -> None:
    """Whatever is forgotten whenever, numbers only grow while each is issued in a second of its own."""
    now_s, highest, known = 1_700_000_000, 0, 0
    for pause_s, forgets in steps:
        now_s += pause_s
        number = next_number(0 if forgets else known, now_s * 1000)
        if now_s < CLOCK_ENDS:
            assert number > highest
        highest = known = number


def test_numbers_fit_into_32_bits_for_millions_of_grants_after_the_last_year() -> None:
    """Sinks pack them: whatever the clock says, there is room above it."""
    assert next_number(CLOCK_ENDS + 10_000_000, 2**62) < 2**32
