"""JVMs that run out of memory sooner than collections of their old objects show a rise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.heap.stretches import Stretch
from tests.unit.manager.core.heap.herds import HEAP, MIB, Herd, holders

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_jvm_that_fills_up_within_minutes_shows_it_by_ending() -> None:
    """Of three tasks first, then of the one that does it alone; the first of them is harmless alone."""
    herd = Herd({"x": 240})
    herd.lazy = {"anna", "berta", "carl", "dora"}
    herd.run(3, anna="abx", berta="cd")
    herd.suspects.out_of_memory("anna")
    herd.suspects.gone("anna")
    herd.run(1, berta="abcd", carl="x")
    assert herd.suspects.left_undecided(herd.at_ms) == {"a", "b", "x"}
    herd.run(2, berta="abcd", carl="x")
    herd.suspects.out_of_memory("carl")
    herd.suspects.gone("carl")
    herd.run(1, berta="abcd", dora="x")
    assert herd.suspected == {"x": "alone"}


@pytest.mark.parametrize(("minutes", "left"), [(1, {"a", "b", "x"}), (10, {"b", "x"})])
def test_what_filled_a_jvm_just_before_one_of_its_tasks_failed_counts(minutes: int, left: set[str]) -> None:
    """A minute is too short for a rise, and without that task; what was long ago is another matter."""
    herd = Herd({"x": 200})
    herd.lazy = {"anna", "berta"}
    herd.run(3, anna="abx", berta="cd")
    herd.run(minutes, anna="bx", berta="cd")
    herd.suspects.out_of_memory("anna")
    herd.suspects.gone("anna")
    assert herd.suspects.left_undecided(herd.at_ms) == left


def filling(shape: Callable[[float], float], minutes: float) -> Stretch:
    """What is in use after collections of the young generation, in MiB by the minute, until the JVM ends."""
    stretch = Stretch("anna", holders("a"), HEAP, 0)
    for look in range(int(minutes * 6) + 1):
        stretch.look(look * 10_000, None, int(shape(look / 6) * MIB), {})
    stretch.out_of_memory()
    return stretch


def test_the_end_of_a_jvm_is_a_rise_only_if_it_filled_up() -> None:
    """To seven tenths, by as much as a quick rise has to be, in a minute or more; from its least use on."""
    found = filling(lambda minute: 900 - 300 * minute if minute < 2 else 200 + 200 * (minute - 2), 5)
    assert found.rise == (120_000, 180_000, 200 * MIB, 800 * MIB)
    assert filling(lambda minute: 100 + 200 * minute, 3).rise is None
    assert filling(lambda minute: 100 + 700 * (minute > 4), 4.6).rise is not None
    assert filling(lambda minute: 100 + 700 * (minute > 0.8), 0.9).rise is None
    assert filling(lambda minute: 800 + minute, 5).rise is None
    assert filling(lambda minute: 800 + minute, 0).rise is None


def test_a_steady_rise_stays_what_it_is_when_the_jvm_ends() -> None:
    """What collections have left says more than what was in use."""
    stretch = Stretch("anna", holders("a"), HEAP, 0)
    for look in range(60):
        stretch.look(look * 10_000, (100 + 8 * look) * MIB, (500 + 8 * look) * MIB, {})
    before = stretch.rise
    stretch.out_of_memory()
    assert stretch.rise == before is not None


@pytest.mark.parametrize(("left", "is_rise"), [(100, False), (160, False), (300, True)])
def test_a_jvm_whose_old_generation_was_left_nearly_empty_has_not_filled_up(
    left: int, *, is_rise: bool
) -> None:
    """What was in use climbs between two collections of it; of a leak they leave as much as it has grown."""
    stretch = Stretch("anna", holders("a"), HEAP, 0)
    for look in range(19):
        stretch.look(look * 10_000, left * MIB if look >= 9 else None, (100 + 40 * look) * MIB, {})
    stretch.out_of_memory()
    assert (stretch.rise is not None) is is_rise
