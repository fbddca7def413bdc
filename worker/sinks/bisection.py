"""Finds the rows that a database refuses, by halves; rules without I/O.

A database refuses a statement as a whole, and says of no row which one it was. So what it refuses is put
there again by halves, down to single rows: of n rows with k that are refused, some 2k log2(n/k) times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class RowsRefusedError(SinkError):
    """The database refuses some of the rows that it was given, for what they are; none of them is there."""


class Refusal(NamedTuple):
    """A row that is refused by itself, as its place among those that were given, and why."""

    at: int
    why: str


def put_by_halves(number: int, put: Callable[[range], None], most: int) -> list[Refusal]:
    """Put all rows but those that are refused, in their order.

    Args:
        number: of the rows.
        put: puts those at these places, all or none; raises `RowsRefusedError`.
        most: how many may be refused; of one more, nobody looks at what comes behind it.

    Returns:
        The refused ones, `most` and one at most: whoever gets more than `most` has to undo what was put.
    """
    refused: list[Refusal] = []
    waiting = [range(number)] if number else []
    while waiting and len(refused) <= most:
        some = waiting.pop()
        try:
            put(some)
        except RowsRefusedError as error:
            if len(some) == 1:
                refused.append(Refusal(some[0], str(error)))
            else:
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
    return refused
