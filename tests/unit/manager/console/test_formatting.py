from __future__ import annotations

import pytest

from manager.console.formatting import ago, counted, duration, figure, iso, moment, shortened, size

NOW = 1_772_377_445_000


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (188, "188 ms"),
        (1000, "1 s"),
        (2_400, "2.4 s"),
        (60_000, "1 min"),
        (119_000, "1 min"),
        (5_400_000, "1 h 30 min"),
        (7_200_000, "2 h"),
        (90_000_000, "1 d 1 h"),
        (86_460_000, "1 d"),
        (604_800_000, "7 d"),
    ],
)
def test_durations_are_told_in_their_largest_units(ms: int, words: str) -> None:
    """Two units at most, and none that is empty."""
    assert duration(ms) == words


def test_how_long_ago_is_told_without_a_future() -> None:
    """Managers' clocks differ by some milliseconds; what seems to come has just been."""
    assert ago(NOW - 61_900, NOW) == "1 min ago"
    assert ago(NOW - 7_650, NOW) == "7 s ago"
    assert ago(NOW + 500, NOW) == "just now"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.3456, "0.35"),
        (12.5, "12.5"),
        (1234, "1,234"),
        (12_345, "12.3 k"),
        (4_500_000, "4.5 M"),
        (2e12, "2,000 G"),
    ],
)
def test_figures_keep_three_places_or_so(value: float, words: str) -> None:
    """Large ones are cut to what a person takes in."""
    assert figure(value) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (64_336, "64.3 kB"),
        (1_500_000_000, "1.5 GB"),
        (4e12, "4,000 GB"),
    ],
)
def test_sizes_are_bytes_in_thousands(count: float, words: str) -> None:
    """A disk is sold by them, too."""
    assert size(count) == words


def test_moments_are_in_utc() -> None:
    """The server does not know where the reader is."""
    assert (moment(NOW), iso(NOW)) == ("2026-03-01 15:04:05 UTC", "2026-03-01T15:04:05Z")


def test_long_names_lose_their_middle() -> None:
    """Both ends stay, since either may be what tells it from its like."""
    assert shortened("short") == "short"
    cut = shortened("a" * 40 + "-the-end", 20)
    assert len(cut) == 20
    assert cut.startswith("aaaa")
    assert cut.endswith("he-end")


def test_things_are_counted() -> None:
    """One is one."""
    assert (counted(1, "task"), counted(1200, "task"), counted(2, "berry", "berries")) == (
        "1 task",
        "1,200 tasks",
        "2 berries",
    )
