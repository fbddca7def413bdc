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
