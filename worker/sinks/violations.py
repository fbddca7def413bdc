"""How often the rows of a batch have violated the expectations of a task (protocol §6); rules without I/O.

A row comes with one more value behind its own, its *mask*: bit n is set if it violates the nth of the
expectations by which rows are left out. 0 is a row that goes to the sink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from worker.sinks.parts import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.sinks.parts import Part, Rows

Counts = tuple[int, ...]
"""Rows by expectation; one that violates two counts for both."""


def added(several: Iterable[Counts], expectations: int) -> Counts:
    """The sum of what was counted apart."""
    total = [0] * expectations
    for counts in several:
        for at, count in enumerate(counts):
            total[at] += count
    return tuple(total)


class Sieve:
    """Lets the rows through that violate nothing, without their masks, and counts the others."""

    def __init__(self, expectations: int) -> None:
        self._bits = [1 << at for at in range(expectations)]
        self._counts = [0] * expectations

    @property
    def counts(self) -> Counts:
        """Of the rows that have come so far."""
        return tuple(self._counts)

    def sifted(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """What the sink is to have of `rows`."""
        for row in rows:
            if row[-1]:
                self._count(row[-1])
            else:
                yield row[:-1]

    def _count(self, mask: int) -> None:
        for at, bit in enumerate(self._bits):
            if mask & bit:
                self._counts[at] += 1


@dataclass(frozen=True, slots=True)
class SiftingTake(Take):
    """Takes of a partition what violates nothing.

    What was counted comes back with the part, so of several attempts at a partition it is that of the one
    which counts.
    """

    expectations: int

    def __call__(self, partition: int, attempt: int, rows: Iterator[tuple[Any, ...]]) -> Part:
        """Called by executors."""
        sieve = Sieve(self.expectations)
        part = Take.__call__(self, partition, attempt, sieve.sifted(rows))
        return replace(part, violations=sieve.counts)


def sifted(rows: Rows, expectations: int) -> tuple[Rows, Counts]:
    """The rows of a small batch that go to the sink, and how often the others violate what."""
    sieve = Sieve(expectations)
    return list(sieve.sifted(rows)), sieve.counts
