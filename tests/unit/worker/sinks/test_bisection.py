"""The rows that a database refuses are found by halves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sinks.bisection import ASK_EVERY, FEW, Refusal, RowsRefusedError, Search, put_by_halves
from worker.sinks.errors import BatchRefusedError, SinkError


class Table:
    """Takes rows as a whole, unless a bad one is among them, or more rows than it takes at once."""

    def __init__(self, bad: set[int], at_once: int = 1_000_000) -> None:
        self.bad = bad
        self.at_once = at_once
        self.rows: list[int] = []
        self.tries = 0

    def put(self, some: range) -> None:
        self.tries += 1
        if not self.bad.isdisjoint(some) or len(some) > self.at_once:
            raise RowsRefusedError("no")
        self.rows += some

    def put_one(self, at: int) -> None:
        self.tries -= 1
        self.put(range(at, at + 1))


@given(st.integers(0, 200), st.sets(st.integers(0, 199)))
def test_each_row_is_put_or_refused_once_and_in_order(number: int, bad: set[int]) -> None:
    """Whichever of how many are bad."""
    table = Table(bad)
    refused = put_by_halves(number, table.put, Search(200))
    wrong = sorted(bad & set(range(number)))
    assert table.rows == [row for row in range(number) if row not in bad]
    assert refused == [Refusal(row, "no", "no") for row in wrong]


@given(st.integers(0, 1000), st.sets(st.integers(0, 999)))
def test_where_a_row_by_itself_is_as_fast_few_are_put_one_by_one(number: int, bad: set[int]) -> None:
    """With the same end; however many are bad, there are no more tries of several than those few need."""
    table = Table(bad)
    refused = put_by_halves(number, table.put, Search(1000), table.put_one)
    assert table.rows == [row for row in range(number) if row not in bad]
    assert [each.at for each in refused] == sorted(bad & set(range(number)))
    assert table.tries <= 4 * (number // FEW + 1)


def test_of_rows_that_are_put_one_by_one_none_is_put_beyond_the_bound_either() -> None:
    """One more than may be is told."""
    table = Table(set(range(100)))
    assert len(put_by_halves(100, table.put, Search(5), table.put_one)) == 6


def test_one_bad_row_of_many_takes_few_tries() -> None:
    """Twice the halvings."""
    table = Table({77_777})
    put_by_halves(100_000, table.put, Search(1))
    assert table.tries <= 2 * 17 + 1


@pytest.mark.parametrize("most", [0, 1, 10])
def test_beyond_the_bound_nobody_looks_on(most: int) -> None:
    """One more than may be is told, for that it is too many."""
    table = Table(set(range(1000)))
    assert len(put_by_halves(1000, table.put, Search(most))) == most + 1
    assert table.tries < 40 + 2 * most


def test_no_rows_are_not_put() -> None:
    """There is nothing to ask the database for."""
    table = Table(set())
    assert put_by_halves(0, table.put, Search(1)) == []
    assert table.tries == 0


@given(st.lists(st.integers(1, 40), max_size=6), st.sets(st.integers(0, 239)))
def test_whatever_rows_are_refused_by_themselves_they_are_found(parts: list[int], bad: set[int]) -> None:
    """In however many parts they come: the bound of the tries is never in the way, and holds for all."""
    search = Search(most=len(bad))
    found = 0
    for at, number in enumerate(parts):
        table = Table({row - 40 * at for row in bad})
        found += len(put_by_halves(number, table.put, search))
    assert found == sum(40 * at + row in bad for at, number in enumerate(parts) for row in range(number))


def test_rows_that_are_refused_together_and_taken_alone_are_not_all_tried() -> None:
    """As by a trigger that counts the rows of a statement: of 100,000 tries nobody would see the end."""
    table = Table(set(), at_once=1)
    with pytest.raises(SinkError, match=r"361 tries .* with 0 found: it .* together .* alone: no"):
        put_by_halves(200_000, table.put, Search(most=9))
    assert table.tries == 1 + 2 * 10 * 18


def test_between_tries_it_is_asked_whether_anybody_wants_the_batch() -> None:
    """A task that is stopped, or somebody else's by now, does not go on with it."""
    table = Table(set(range(1000)))

    def ask() -> None:
        raise BatchRefusedError("stopped")

    with pytest.raises(BatchRefusedError):
        put_by_halves(1000, table.put, Search(1000, ask))
    assert table.tries == ASK_EVERY - 1
