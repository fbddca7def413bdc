"""What full collections look at while a manager serves."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from manager.runtime.full_collections import WHOLE_S, short_full_collections

if TYPE_CHECKING:
    from collections.abc import Iterator


class Node:
    """Part of a cycle with itself."""

    def __init__(self) -> None:
        self.itself = self


class Clock:
    """A time that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Of a block in which collections are short, after whatever other tests have left behind."""
    gc.collect()
    clock = Clock()
    with short_full_collections(clock):
        yield clock


def test_what_has_outlived_a_full_collection_is_looked_at_once_an_hour(clock: Clock) -> None:
    """Until then nobody waits for it; then its cycle is freed."""
    kept = Node()
    seen = weakref.ref(kept)
    gc.collect()
    assert gc.get_freeze_count() > 0
    del kept
    clock.now = WHOLE_S - 1
    gc.collect()
    assert seen() is not None
    clock.now = WHOLE_S
    gc.collect()
    assert seen() is None


def test_a_cycle_that_is_new_is_freed_by_the_next_collection(clock: Clock) -> None:
    """It has outlived none."""
    del clock
    gc.collect()
    seen = weakref.ref(Node())
    gc.collect()
    assert seen() is None


def test_younger_collections_leave_out_nothing(clock: Clock) -> None:
    """They look at few objects as it is."""
    del clock
    gc.unfreeze()
    gc.collect(1)
    assert gc.get_freeze_count() == 0


def test_afterwards_all_is_as_it_was() -> None:
    """Nothing stays left out of those that follow."""
    before = list(gc.callbacks)
    with short_full_collections():
        gc.collect()
    assert gc.callbacks == before
    assert gc.get_freeze_count() == 0
