"""Rows that violate expectations are counted, and do not get to the sink."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from worker.sinks.errors import SinkError
from worker.sinks.violations import Sieve, SiftingTake, added, sifted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.sinks.parts import Rows

ROWS: Rows = [("a", 0), ("b", 1), ("c", 3), ("d", 0), ("e", 2), ("f", 2)]
"""Each with its mask; the first expectation is violated by two rows, the second by three."""


@dataclass
class Staged:
    """A stage that keeps rows in a list, and may have no room for more than some."""

    most: int = 100
    rows: Rows = field(default_factory=list)
    here_only: bool = True

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> int:
        del partition, attempt
        for chunk in chunks:
            self.rows += chunk
            if len(self.rows) > self.most:
                raise SinkError("full")
        return len(self.rows)


def test_a_small_batch_is_sifted_at_the_driver() -> None:
    """A row that violates two counts for both, and is left out once."""
    assert sifted(ROWS, 2) == ([("a",), ("d",)], (2, 3))
    assert sifted([], 2) == ([], (0, 0))


@pytest.mark.parametrize("inline", [0, 1, 2, 100])
def test_a_partition_is_sifted_where_it_is_computed(inline: int) -> None:
    """Whether its rows come back inline or are staged: two good ones in both cases."""
    stage = Staged()
    part = SiftingTake(stage, inline, 2)(0, 7, iter(ROWS))
    assert (part.rows or stage.rows) == [("a",), ("d",)]
    assert (part.rows is None) == (inline < 2)
    assert (part.attempt, part.count, part.violations) == (7, 2, (2, 3))


def test_a_partition_without_a_good_row_is_empty() -> None:
    """And is counted."""
    part = SiftingTake(Staged(), 10, 2)(0, 7, iter(ROWS[1:3]))
    assert (part.rows, part.count, part.violations) == ([], 0, (2, 1))


def test_a_partition_that_cannot_be_staged_is_computed_to_its_end() -> None:
    """A query with state commits it at the end only."""
    rows = iter(ROWS)
    part = SiftingTake(Staged(most=0), 0, 2)(0, 7, rows)
    assert part.fault == "full"
    assert list(rows) == []


def test_it_travels_to_executors() -> None:
    """And takes there what it would take here."""
    take = pickle.loads(pickle.dumps(SiftingTake(Staged(), 100, 2)))
    assert take(0, 7, iter(ROWS)).violations == (2, 3)


def test_sixty_expectations_have_a_bit_each() -> None:
    """The highest one, too."""
    sieve = Sieve(60)
    assert list(sieve.sifted([(1, 1 << 59), (2, 0)])) == [(2,)]
    assert sieve.counts == (0,) * 59 + (1,)


def test_what_was_counted_apart_is_added() -> None:
    """Partitions that nobody has sifted have no counts."""
    assert added([(1, 2), (), (3, 0)], 2) == (4, 2)
    assert added([], 2) == (0, 0)
