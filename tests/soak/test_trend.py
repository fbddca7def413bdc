"""Whether figures grow, by lines with a known slope and noise from a fixed seed."""

from __future__ import annotations

import random

import pytest

from tests.soak.trend import trend

HOUR = [float(at) for at in range(0, 3600, 15)]


def test_a_line_has_its_slope_and_no_error() -> None:
    """36 more in an hour, from 100 on."""
    found = trend([(at, 100 + at / 100) for at in HOUR])
    assert found.slope == pytest.approx(36)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.sure_growth == pytest.approx(36)
    assert found.mean == pytest.approx(100 + HOUR[-1] / 200)


def test_noise_about_a_level_is_hardly_ever_growth() -> None:
    """Of a hundred series each of white noise and of a walk that is drawn back, few seem to grow."""
    draw = random.Random(7)
    grown = 0
    for drag in (1.0, 0.2):
        for _ in range(100):
            level, points = 0.0, []
            for at in HOUR:
                level += draw.gauss(0, 1) - drag * level
                points.append((at, 100 + level))
            grown += trend(points).sure_growth > 0
    assert grown <= 12


def test_growth_shows_through_noise() -> None:
    """Ten in an hour, under a noise of one."""
    draw = random.Random(7)
    found = trend([(at, at / 360 + draw.gauss(0, 1)) for at in HOUR])
    assert found.slope == pytest.approx(10, abs=3 * found.error)
    assert found.sure_growth > 5


def test_what_shrinks_does_not_grow() -> None:
    """It is no fault."""
    assert trend([(at, -at) for at in HOUR]).sure_growth == 0


@pytest.mark.parametrize("points", [[(0.0, 1.0), (1.0, 2.0)], [(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)]])
def test_too_few_points_have_no_trend(points: list[tuple[float, float]]) -> None:
    """Two, or several of one moment."""
    with pytest.raises(ValueError, match="points"):
        trend(points)
