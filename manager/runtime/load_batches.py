"""How many groups are taken up before heartbeats and leases have their turn: by what they consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GROUPS_AT_ONCE: Final = 50
ROWS_AT_ONCE: Final = 5000
"""To take that many up is some 10 ms; storage reads them in smaller pieces still."""


def load_batches(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The groups in their order, some at a time: not too many of them, and not too many rows.

    A group of more than `ROWS_AT_ONCE` rows comes alone.

    Args:
        sizes: groups, each with the number of its rows.
    """
    some: list[str] = []
    rows = 0
    for name, size in sizes.items():
        if some and (len(some) == GROUPS_AT_ONCE or rows + size > ROWS_AT_ONCE):
            yield tuple(some)
            some, rows = [], 0
        some.append(name)
        rows += size
    if some:
        yield tuple(some)
