"""The rows that a database refuses are found by halves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sinks.bisection import Refusal, RowsRefusedError, put_by_halves


class Table:
    """Takes rows as a whole, unless a bad one is among them."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.rows: list[int] = []
        self.tries = 0

    def put(self, some: range) -> None:
        self.tries += 1
        if not self.bad.isdisjoint(some):
            raise RowsRefusedError("no")
        self.rows += some


@given(st.integers(0, 200), st.sets(st.integers(0, 199)))
def test_each_row_is_put_or_refused_once_and_in_order(number: int, bad: set[int]) -> None:
    """Whichever of how many are bad."""
    table = Table(bad)
    refused = put_by_halves(number, table.put, most=200)
    wrong = sorted(bad & set(range(number)))
    assert table.rows == [row for row in range(number) if row not in bad]
    assert refused == [Refusal(row, "no") for row in wrong]


def test_one_bad_row_of_many_takes_few_tries() -> None:
    """Twice the halvings."""
    table = Table({77_777})
    put_by_halves(100_000, table.put, most=1)
    assert table.tries <= 2 * 17 + 1


@pytest.mark.parametrize("most", [0, 1, 10])
def test_beyond_the_bound_nobody_looks_on(most: int) -> None:
    """One more than may be is told, for that it is too many."""
    table = Table(set(range(1000)))
    assert len(put_by_halves(1000, table.put, most)) == most + 1
    assert table.tries < 40 + 2 * most


def test_no_rows_are_not_put() -> None:
    """There is nothing to ask the database for."""
    table = Table(set())
    assert put_by_halves(0, table.put, most=1) == []
    assert table.tries == 0
