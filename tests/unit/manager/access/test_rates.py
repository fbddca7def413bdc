"""How many requests one client may make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.access import rates as module
from manager.access.rates import Rates


def test_a_burst_and_then_the_rate() -> None:
    """After the burst one request for each token that has dripped in; a refused one costs nothing."""
    rates = Rates(per_s=2, burst=4)
    assert [rates.take("a", 0.0) for _ in range(4)] == [0, 0, 0, 0]
    assert rates.take("a", 0.0) == pytest.approx(0.5)
    assert rates.take("a", 0.25) == pytest.approx(0.25)
    assert rates.take("a", 0.5) == 0
    assert rates.take("a", 0.5) > 0


def test_clients_do_not_share() -> None:
    """One that is refused takes nothing from others."""
    rates = Rates(per_s=1, burst=1)
    assert rates.take("a", 0.0) == 0
    assert rates.take("a", 0.0) > 0
    assert rates.take("b", 0.0) == 0


def test_a_bucket_is_never_fuller_than_full() -> None:
    """However long a client was silent."""
    rates = Rates(per_s=1, burst=2)
    assert [rates.take("a", 1e6) == 0 for _ in range(3)] == [True, True, False]


@given(st.lists(st.floats(0, 0.3), max_size=200))
def test_never_more_than_burst_and_rate_together(pauses: list[float]) -> None:
    """In any span of time from the first request on."""
    rates, now, admitted = Rates(per_s=5, burst=3), 0.0, 0
    for pause in pauses:
        now += pause
        admitted += rates.take("a", now) == 0
    assert admitted <= 3 + 5 * now + 1e-6


@given(st.lists(st.floats(0, 10), max_size=50))
def test_who_waits_as_told_is_let_in(pauses: list[float]) -> None:
    """The answer's number of seconds is enough."""
    rates, now = Rates(per_s=3, burst=2), 0.0
    for pause in pauses:
        now += pause
        if wait_s := rates.take("a", now):
            now += wait_s + 1e-9
            assert rates.take("a", now) == 0


def test_many_names_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with full buckets are forgotten first."""
    monkeypatch.setattr(module, "MOST_CLIENTS", 10)
    rates = Rates(per_s=1, burst=1)
    for number in range(100):
        assert rates.take(str(number), float(number * 2)) == 0
        assert len(rates._full_at) <= 10
    for number in range(100):
        rates.take(f"at once {number}", 1e6)
        assert len(rates._full_at) <= 10
