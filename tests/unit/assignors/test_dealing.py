from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.dealing import pour

few = st.integers(0, 5)


def _worth(shares: tuple[int, ...], loads: list[int], wanted: list[int]) -> tuple[int, int]:
    """How uneven, then how little of what is wanted."""
    squares = sum((share + load) ** 2 for share, load in zip(shares, loads, strict=True))
    return squares, -sum(map(min, shares, wanted))


@settings(max_examples=300)
@given(amount=few, rows=st.lists(st.tuples(few, few), min_size=1, max_size=4))
def test_nothing_levels_better_or_gives_more_of_what_is_wanted(
    amount: int, rows: list[tuple[int, int]]
) -> None:
    """Compared with every way there is to pour."""
    loads, wanted = [load for load, _ in rows], [want for _, want in rows]
    ways = (way for way in product(range(amount + 1), repeat=len(rows)) if sum(way) == amount)
    poured = tuple(pour(amount, loads, wanted))
    assert sum(poured) == amount
    assert _worth(poured, loads, wanted) == min(_worth(way, loads, wanted) for way in ways)


def test_what_stands_high_gets_nothing() -> None:
    """Water does not climb."""
    assert pour(3, [9, 0, 1], [0, 0, 0]) == [0, 2, 1]


def test_a_wish_decides_who_gets_the_odd_one() -> None:
    """Two are level, one unit is left: it goes to the one that wants more than its level share."""
    assert pour(3, [0, 0], [0, 2]) == [1, 2]
    assert pour(3, [0, 0], [2, 0]) == [2, 1]
