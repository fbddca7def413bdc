from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.offers import ALIKE, Loads, Offers

changes = st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), min_size=10, max_size=40)


@given(capacities=st.lists(st.sampled_from([1.0, 1.0, 1.5]), min_size=4, max_size=4), changes=changes)
def test_the_best_offer_is_the_best_there_is(capacities: list[float], changes: list[tuple[int, int]]) -> None:
    """After any rises and falls, as found by looking at everybody."""
    loads = Loads(capacities)
    offers = Offers(range(4), loads)
    for member, change in changes:
        loads.work[member] = max(0, loads.work[member] + change)
        if change < 0:
            offers.sank(member)
        size = abs(change) + 1
        assert offers.best(size) == min((loads.height(each, size), each) for each in range(4))


@given(capacities=st.lists(st.floats(0.1, 10), min_size=8, max_size=8), work=st.lists(st.integers(0, 99)))
def test_capacities_that_are_nearly_alike_may_be_confused(capacities: list[float], work: list[int]) -> None:
    """The task counts a sixteenth more at most."""
    loads = Loads(capacities)
    loads.work[: len(work[:8])] = work[:8]
    best, _ = Offers(range(8), loads).best(30)
    assert best <= min((loads.work[each] + 30 * ALIKE) / capacities[each] for each in range(8)) + 1e-9


def test_a_stranger_that_sank_offers_nothing() -> None:
    """Only those it was made for do."""
    loads = Loads([1.0, 1.0, 1.0])
    loads.work[:] = [5, 9, 9]
    offers = Offers([1, 2], loads)
    offers.sank(0)
    assert offers.best(1) == (10.0, 1)


@pytest.mark.parametrize("nonsense", [0.0, -2.0, nan, inf, 1e308, 5e-324])
def test_a_capacity_that_means_nothing_counts_as_one(nonsense: float) -> None:
    """It comes from another worker, which may be of any version."""
    assert Loads([nonsense, 2.0]).capacities == [1.0, 2.0]
