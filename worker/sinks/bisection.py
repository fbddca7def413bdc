"""Finds the rows that a database refuses, by halves; rules without I/O.

A database refuses a statement as a whole, and says of no row which one it was. So what it refuses is put
there again by halves, down to single rows: of n rows with k that are refused, some 2k log2(n/k) times. Where
a row by itself is put as fast as among others, as by a database in this process, the last halves are put row
by row.

That ends, whatever the database does. One that refuses rows together and takes each of them alone would be
asked for every one of them: so no more tries are made than rows that may be put aside can be worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASK_EVERY: Final = 16
"""Tries after which it is asked whether the batch is still wanted; where that is asked of a server, too."""
FEW: Final = 128
"""Rows that are put one by one, where that is as fast: to halve them costs more tries than it spares rows."""


class RowsRefusedError(SinkError):
    """The database refuses some of the rows that it was given, for what they are; none of them is there."""

    def __init__(self, why: str, public: str | None = None) -> None:
        """`public` is what anybody may read of it, if that is less than `why`."""
        super().__init__(why)
        self.public = why if public is None else public


class Refusal(NamedTuple):
    """A row that is refused by itself, as its place among those that were given, and why.

    `public` is what anybody may read of that.
    """

    at: int
    why: str
    public: str


class Search:
    """How far the search for the refused rows of one batch may go; its rows may come in several parts."""

    def __init__(self, most: int, ask: Callable[[], None] = lambda: None) -> None:
        """Nothing was tried yet.

        Args:
            most: how many rows may be refused.
            ask: raises if nobody wants the batch any more.
        """
        self._most = most
        self._ask = ask
        self._found = 0
        self._why = ""
        self._tries = 0
        self._parts = 0
        self._depth = 0

    @property
    def is_over(self) -> bool:
        """Whether more rows are refused than may be: nobody needs to look at the others."""
        return self._found > self._most

    def begin_part(self, number: int) -> None:
        """So many rows more are put."""
        self._parts += 1
        self._depth = max(self._depth, (number - 1).bit_length())

    def begin_try(self) -> None:
        """Some of them are.

        Raises:
            SinkError: that was done too often; or what `ask` raises.
        """
        if self._tries >= self._parts + 2 * (self._most + 1) * self._depth:
            raise SinkError(
                f"{self._tries:,} tries to find the rows that the database refuses were too many, with"
                f" {self._found:,} found: it refuses rows together that it takes alone: {self._why}"
            )
        self._tries += 1
        if self._tries % ASK_EVERY == 0:
            self._ask()

    def note_refusal(self, number: int, why: str) -> None:
        """So many rows are refused together; one of them is found."""
        self._found += number == 1
        self._why = why


def put_by_halves(
    number: int,
    put: Callable[[range], None],
    search: Search,
    put_one: Callable[[int], None] | None = None,
) -> list[Refusal]:
    """Put all rows but those that are refused, in their order.

    Args:
        number: of the rows.
        put: puts those at these places, all or none; raises `RowsRefusedError`.
        search: how far to go; of one row more than may be refused, nobody looks at what comes behind it.
        put_one: puts the row at a place, as `put` does, where that is as fast.

    Returns:
        The refused ones. Whoever finds the search over has to undo what was put.
    """
    refused: list[Refusal] = []
    waiting = [range(number)] if number else []
    search.begin_part(max(number, 1))
    while waiting and not search.is_over:
        some = waiting.pop()
        search.begin_try()
        try:
            put(some)
        except RowsRefusedError as error:
            search.note_refusal(len(some), error.public)
            if len(some) == 1:
                refused.append(Refusal(some[0], str(error), error.public))
            elif put_one is not None and len(some) <= FEW:
                refused += _put_singly(some, put_one, search)
            else:
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
    return refused


def _put_singly(some: range, put_one: Callable[[int], None], search: Search) -> Iterator[Refusal]:
    """Put those that are taken; the others come out."""
    for at in some:
        if search.is_over:
            return
        try:
            put_one(at)
        except RowsRefusedError as error:
            search.note_refusal(1, error.public)
            yield Refusal(at, str(error), error.public)
