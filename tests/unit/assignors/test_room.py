from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from assignors.room import placeable

limits = st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=4)
lots = st.dictionaries(
    st.sets(st.integers(0, 3), max_size=3).map(lambda able: tuple(sorted(able))),
    st.integers(0, 3),
    max_size=3,
)


def most(amounts: dict[tuple[int, ...], int], rooms: dict[int, int | None]) -> int:
    """The slow and plain way: every way to place or leave out each task."""
    tasks = [able for able, amount in amounts.items() for _ in range(amount)]
    best = 0
    for choice in product(*([None, *(at for at in able if at in rooms)] for able in tasks)):
        placed = [at for at in choice if at is not None]
        if all(limit is None or placed.count(at) <= limit for at, limit in rooms.items()):
            best = max(best, len(placed))
    return best


@given(amounts=lots, rooms=limits)
def test_as_many_as_there_is_any_way_to_place(
    amounts: dict[tuple[int, ...], int], rooms: list[int | None]
) -> None:
    """Compared with all ways there are."""
    limits = dict(enumerate(rooms))
    assert placeable(amounts, limits) == most(amounts, limits)


def test_many_are_placed_at_once() -> None:
    """A step for each member, not for each task."""
    everybody = tuple(range(1000))
    assert placeable({everybody: 10**9, (0,): 7}, dict.fromkeys(everybody, 10)) == 10_000
