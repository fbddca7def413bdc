from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.http.paging import page_of
from protocol.messages.base import PageQuery

names = st.lists(st.text("abc.Z", min_size=1, max_size=3), unique=True).map(sorted)


def page(
    items: list[str], limit: int | None = None, after: str | None = None
) -> tuple[tuple[str, ...], str | None]:
    return page_of(items, lambda item: item, PageQuery(limit=limit, after=after))


@given(names, st.integers(1, 5))
def test_pages_one_after_another_are_the_whole_list(items: list[str], limit: int) -> None:
    """In order, each full but the last, and the last one says so."""
    found, after = page(items, limit)
    whole = [found]
    while after is not None:
        found, after = page(items, limit, after)
        whole.append(found)
    assert [item for each in whole for item in each] == items
    assert all(len(each) == limit for each in whole[:-1])


@pytest.mark.parametrize(
    ("limit", "after", "expected"),
    [
        (None, None, (("a", "c", "e"), None)),
        (None, "a", (("c", "e"), None)),
        (3, None, (("a", "c", "e"), None)),
        (2, None, (("a", "c"), "c")),
        (1, "b", (("c",), "c")),
        (2, "z", ((), None)),
    ],
)
def test_a_page_begins_after_a_name(
    limit: int | None, after: str | None, expected: tuple[tuple[str, ...], str | None]
) -> None:
    """Whether it is still there or not; without a limit a list is complete."""
    assert page(["a", "c", "e"], limit, after) == expected
