"""What happens to one partition of a batch where it is computed: on an executor, in a process of its own.

A small partition goes back to the driver as it is, a large one into a staging area that nobody reads yet.
That is decided by each partition for itself, when it has been computed: no guess is made about its size.
(Whether a batch is likely to be so small that the driver may ask for it without all this is a guess; the sink
makes it, and a wrong one costs time.) Spark may try a partition several times, and even two attempts at once;
each attempt stages under a number of its own that no other ever has, and only those that Spark tells the
driver of are taken from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from worker.left_out import NOTHING
from worker.sinks.aside import are_too_large, counted
from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.left_out import LeftOut
    from worker.sinks.aside import Aside

Rows = list[tuple[Any, ...]]
"""Some rows of a batch, values in the order of the query's columns, as `worker.sinks.types` has them."""

CHUNK_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Part:
    """What became of a partition: its rows, or None if they are staged under `attempt`."""

    attempt: int
    count: int
    rows: Rows | None = None
    fault: str | None = None
    """Why the sink cannot take it; an error would come back wrapped in Spark's own words."""
    left_out: LeftOut = NOTHING
    """Rows of it that do not go to the sink."""
    aside: tuple[Aside, ...] = ()
    """Those of them that are put aside, or the first ones."""

    def bare(self) -> Part:
        """Without what was left out of it, which somebody else has noted down."""
        return replace(self, left_out=NOTHING, aside=())


class Staged(NamedTuple):
    """What has become of the rows of an attempt: how many are staged, and which the place has not taken."""

    rows: int
    aside: tuple[Aside, ...] = ()


class Stage(Protocol):
    """A place to put rows before they count; travels to executors."""

    @property
    def here_only(self) -> bool:
        """Whether only processes of this machine can reach it."""
        ...

    def put(self, partition: int, attempt: int, chunks: Iterator[Rows]) -> Staged:
        """Keep the rows of an attempt.

        Raises:
            SinkError: the place cannot be written to, or cannot hold these rows.
        """
        ...


@dataclass(frozen=True, slots=True)
class Take:
    """The function that executors call for each partition."""

    stage: Stage
    inline_rows: int

    def __call__(self, partition: int, attempt: int, rows: Iterator[tuple[Any, ...]]) -> Part:
        """Keep up to `inline_rows` rows, or stage all of them."""
        head = list(islice(rows, self.inline_rows + 1))
        if len(head) <= self.inline_rows:
            return Part(attempt, len(head), rows=head)
        try:
            staged = self.stage.put(partition, attempt, chunked(chain(head, rows)))
            return Part(attempt, staged.rows, left_out=counted(staged.aside), aside=staged.aside)
        except SinkError as error:
            drain(rows)
            return Part(attempt, 0, fault=str(error))


def drain(rows: Iterator[Any]) -> None:
    """Compute what nobody wants: a query with state commits it at the end only."""
    for _ in rows:
        pass


def too_many(aside: Sequence[Aside], most: int | None) -> bool:
    """Whether a batch fails for what is put aside already, so that nobody needs to look at the rest of it."""
    return most is not None and (len(aside) > most or are_too_large(aside))


def whole(rows: Rows) -> Part:
    """A small batch that came to the driver in one piece."""
    return Part(0, len(rows), rows=rows)


def chunked(rows: Iterator[tuple[Any, ...]]) -> Iterator[Rows]:
    """The rows in lists of at most `CHUNK_ROWS`."""
    while chunk := list(islice(rows, CHUNK_ROWS)):
        yield chunk


def raise_faults(parts: list[Part]) -> None:
    """Raise what some partition could not do."""
    for part in parts:
        if part.fault is not None:
            raise SinkError(part.fault)
