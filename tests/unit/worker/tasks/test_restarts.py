from __future__ import annotations

import pytest

from definition.document import Restart
from worker.tasks.restarts import Failures


def fail(times: list[float], policy: Restart) -> Failures:
    """The failures at `times`."""
    failures = Failures()
    for time in times:
        failures = failures.and_one(time, policy)
    return failures


def test_restarts_come_later_and_later() -> None:
    """One second, doubling; then it is enough."""
    policy = Restart()
    delays = [
        fail([float(time) for time in range(n + 1)], policy).restart_delay_s(policy, 0.5) for n in range(6)
    ]
    assert delays == [1, 2, 4, 8, 16, None]


def test_the_delay_ends_at_a_minute() -> None:
    """However patient the policy is."""
    policy = Restart(max_restarts=100)
    assert fail([0.0] * 50, policy).restart_delay_s(policy, 0.5) == 60


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_the_delay_is_spread_by_a_fifth(chance: float, delay: float) -> None:
    """Tasks that fail together do not start together."""
    assert fail([0.0], Restart()).restart_delay_s(Restart(), chance) == pytest.approx(delay)


def test_no_restart_at_all() -> None:
    """`max_restarts` 0: the first failure is the last."""
    policy = Restart(max_restarts=0)
    assert fail([0.0], policy).restart_delay_s(policy, 0.5) is None


def test_failures_count_only_within_the_window() -> None:
    """A task that fails once an hour is restarted for ever."""
    policy = Restart(max_restarts=1, window_ms=60_000)
    hourly = fail([0.0, 3600.0, 7200.0], policy)
    assert hourly.restart_delay_s(policy, 0.5) == 1
    assert hourly.times == (7200.0,)
    assert fail([0.0, 59.0], policy).restart_delay_s(policy, 0.5) is None


def test_failures_of_one_series_count_however_far_they_lie_apart() -> None:
    """It ends with the first that is no more of them."""
    policy = Restart(max_restarts=2, window_ms=60_000)
    failures = Failures()
    for time in (0.0, 3600.0):
        failures = failures.and_one(time, policy, again=True)
    assert failures.and_one(7200.0, policy, again=True).restart_delay_s(policy, 0.5) is None
    assert failures.and_one(7200.0, policy).times == (7200.0,)


def test_outages_do_not_count_and_come_back_within_a_quarter_of_a_minute() -> None:
    """Brokers may be away for hours: the task goes on soon after, and has all its restarts then."""
    policy, failures = Restart(), Failures()
    delays = []
    for time in range(0, 300, 20):
        failures = failures.and_one(float(time), policy, outage=True)
        delays.append(failures.restart_delay_s(policy, 0.5))
    assert delays == [1, 2, 4, 8, *[15] * 11]
    for time, delay in zip(range(300, 306), [1, 2, 4, 8, 16, None], strict=True):
        failures = failures.and_one(float(time), policy)
        assert failures.restart_delay_s(policy, 0.5) == delay


def test_an_outage_between_failures_neither_adds_to_them_nor_wipes_them_out() -> None:
    """A query that fails by itself in between has used up what it has used up."""
    policy = Restart(max_restarts=1)
    failures = Failures().and_one(0.0, policy).and_one(1.0, policy, outage=True)
    assert failures.restart_delay_s(policy, 0.5) == 1
    assert failures.and_one(2.0, policy).restart_delay_s(policy, 0.5) is None


def test_outages_of_long_ago_do_not_delay_the_next() -> None:
    """Each begins with a short wait."""
    policy, failures = Restart(), Failures()
    for time in (0.0, 20.0, 40.0, 1000.0):
        failures = failures.and_one(time, policy, outage=True)
    assert failures.restart_delay_s(policy, 0.5) == 1
