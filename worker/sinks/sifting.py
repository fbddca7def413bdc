"""Takes out of a batch what violates the expectations of its task (protocol §6); rules without I/O.

A row comes with one more value behind its own, its *mask*: bit n is set if it violates the nth of the
expectations by which rows are left out. 0 is a row that goes to the sink. Behind the expectations' bits there
may be those of the sink's own conditions, which are set only in rows that violate no expectation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from definition.left_out import REFUSED
from worker.left_out import LeftOut
from worker.sinks.aside import MOST_BYTES, SHOWN_ROWS, Aside
from worker.sinks.parts import Take
from worker.sinks.row_json import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from worker.sinks.parts import Part


MASK: Final = "_sparkherd_violations"
"""The name of the mask's column, which is behind all others."""


@dataclass(frozen=True, slots=True)
class Sifting:
    """How the rows of one query are sifted; travels to executors.

    Args:
        names: of the expectations and conditions that have a bit, in the order of the bits.
        quarantined: those bits whose rows are put aside; the rows of the others are dropped.
        wheres: their conditions, for causes.
        refusing: those bits that are of the sink's conditions.
        most: how many of the rows of a batch may be put aside.
        columns: the names of the result's columns.
        kinds: Spark's types of them.
    """

    names: tuple[str, ...]
    quarantined: int = 0
    wheres: tuple[str, ...] = ()
    most: int = 0
    columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    refusing: int = 0

    @property
    def counted(self) -> tuple[tuple[str, int], ...]:
        """What rows count for that are left out, each with the bits that it is known by."""
        bits = ((name, 1 << at) for at, name in enumerate(self.names))
        of_each = tuple((name, bit) for name, bit in bits if not bit & self.refusing)
        return (*of_each, (REFUSED, self.refusing)) if self.refusing else of_each

    def violated(self, mask: int) -> tuple[str, ...]:
        """The expectations, or the conditions of the sink, that a row with this mask violates."""
        return tuple(name for at, name in enumerate(self.names) if mask & 1 << at)

    def aside(self, mask: int, raw: bytes) -> Aside:
        """A row that is put aside, as JSON."""
        names = self.violated(mask)
        error = f"{names[0]} is violated: {self.wheres[self.names.index(names[0])]}"
        if mask & self.refusing:
            return Aside("refused", names, f"the sink refuses it: {error}", "row", raw)
        return Aside("violation", names, error, "row", raw)


class Sieve:
    """Lets the rows through that violate nothing, without their masks, and counts and keeps the others.

    Each partition has one. Where it finds by itself that its batch fails, for more rows or bytes than may be
    put aside, it keeps only as many rows as the cause shows: all that it keeps goes to the driver.
    """

    def __init__(self, sifting: Sifting) -> None:
        self.kept: list[Aside] = []
        self._sifting = sifting
        self._bytes = 0
        self._is_over = False
        self._masks: Counter[int] = Counter()

    @property
    def left_out(self) -> LeftOut:
        """Of the rows that have come so far."""
        return left_out(self._masks, self._sifting)

    def sifted(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """What the sink is to have of `rows`."""
        for row in rows:
            if row[-1]:
                self._leave_out(row)
            else:
                yield row[:-1]

    def _leave_out(self, row: Sequence[Any]) -> None:
        mask, sifting = row[-1], self._sifting
        self._masks[mask] += 1
        if mask & sifting.quarantined and not self._is_over:
            self._keep(sifting.aside(mask, as_json(sifting.columns, sifting.kinds, row[:-1])))

    def _keep(self, row: Aside) -> None:
        self.kept.append(row)
        self._bytes += row.size
        if len(self.kept) > self._sifting.most or self._bytes > MOST_BYTES:
            self._is_over = True
            del self.kept[SHOWN_ROWS:]


@dataclass(frozen=True, slots=True)
class SiftingTake(Take):
    """Takes of a partition what violates nothing.

    What was left out comes back with the part, so of several attempts at a partition it is that of the one
    which counts.
    """

    sifting: Sifting

    def __call__(self, partition: int, attempt: int, rows: Iterator[tuple[Any, ...]]) -> Part:
        """Called by executors."""
        sieve = Sieve(self.sifting)
        part = Take.__call__(self, partition, attempt, sieve.sifted(rows))
        return replace(part, left_out=part.left_out + sieve.left_out, aside=(*part.aside, *sieve.kept))


def left_out(masks: Counter[int], sifting: Sifting) -> LeftOut:
    """What rows with these masks count for.

    Args:
        masks: how many rows have which; none of them is 0.
        sifting: what the bits are of.
    """
    reasons: Counter[str] = Counter()
    quarantined = 0
    for mask, rows in masks.items():
        quarantined += rows if mask & sifting.quarantined else 0
        for name, bits in sifting.counted:
            reasons[name] += rows if mask & bits else 0
    return LeftOut(masks.total() - quarantined, quarantined, dict(+reasons))
