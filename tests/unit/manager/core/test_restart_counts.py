"""Counting restarts within a window, in few bytes."""

from __future__ import annotations

import random

import pytest

from manager.core.restart_counts import KEPT_S, MOST_ENTRIES, and_one, count

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW = 1_800_000_000_000


def counted(*at_ms: int) -> bytes:
    kept = b""
    for each in at_ms:
        kept = and_one(kept, each)
    return kept


def test_few_are_counted_one_by_one() -> None:
    """To the second, at any window."""
    kept = counted(*(NOW + number * 60_000 for number in range(MOST_ENTRIES)))
    last = NOW + (MOST_ENTRIES - 1) * 60_000
    assert [count(kept, minutes * 60_000 - 1000, last) for minutes in range(1, 65)] == [*range(1, 65)]


@pytest.mark.parametrize("every_s", [15, 60])
def test_many_are_counted_about_right(every_s: int) -> None:
    """A task that is restarted for a day, at uneven times: within 5 percent, in bounded bytes."""
    chance, at = random.Random(1), NOW
    kept, all_at = b"", []
    for _ in range(DAY_MS // 1000 // every_s):
        at += int(every_s * 1000 * chance.uniform(0.5, 1.5))
        kept = and_one(kept, at)
        all_at.append(at)
    for window in (HOUR_MS, 6 * HOUR_MS, DAY_MS):
        expected = sum(at - each <= window for each in all_at)
        assert count(kept, window, at) == pytest.approx(expected, rel=0.05)
    assert len(kept) <= 12 * MOST_ENTRIES


def test_what_is_longer_ago_than_any_window_is_forgotten() -> None:
    """With the next one."""
    kept = counted(NOW, NOW + (KEPT_S + 1) * 1000)
    assert kept == counted(NOW + (KEPT_S + 1) * 1000)


def test_a_clock_that_was_set_back_counts_what_is_to_come_for_a_window_at_most() -> None:
    """A task is not told to restart for ever because a clock was a day ahead once."""
    kept = counted(*([NOW + DAY_MS - 1000] * 9))
    assert count(kept, HOUR_MS, NOW) == 0
    assert count(and_one(kept, NOW), HOUR_MS, NOW) == 1


@pytest.mark.parametrize("at_ms", [-1, 0, 2**60])
def test_no_clock_is_too_wrong(at_ms: int) -> None:
    """A report is never refused because of it."""
    assert count(and_one(b"", at_ms), HOUR_MS, at_ms) == 1


def test_what_is_no_count_counts_as_far_as_it_goes() -> None:
    """Somebody has mended a row by hand."""
    assert count(counted(NOW)[:7], HOUR_MS, NOW) == 0
