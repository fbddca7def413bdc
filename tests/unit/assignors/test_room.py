from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from assignors.room import placeable

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Walked(tuple[int, ...]):
    """Members that count how often they are gone through."""

    __slots__ = ()
    walks = 0

    def __iter__(self) -> Iterator[int]:
        Walked.walks += 1
        return super().__iter__()


def test_many_members_with_room_are_filled_in_one_go() -> None:
    """Nor is one lot gone through for each member that it flows to: the leader asks for each of many."""
    lots: dict[tuple[int, ...], int] = {
        Walked(range(300)): 2000,
        Walked(range(400)): 900,
        Walked(range(100, 400)): 10**6,
    }
    assert placeable(lots, dict.fromkeys(range(400), 10)) == 4000
    assert Walked.walks < 30
