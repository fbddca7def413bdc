"""The demo's tasks, and by which rows of the sink one sees how far each has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from cli.demo.truth import Row

FLIGHTS: Final = "flights"
DELAYS: Final = "delays"

Value: TypeAlias = str | int
Count: TypeAlias = tuple[Value, int]


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A task to create, and which rows of the sink are its own.

    They are those of `table` that have one of `values` in the column that tells tasks apart; `rows` is how
    many flights it is to read, None if nobody knows beforehand.
    """

    name: str
    definition: Mapping[str, Any]
    table: str
    values: tuple[str | int, ...]
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All tasks; of the table `flights`, `flights_by` is the column that tells them apart.

    `rows` is how many flights they all together are to read: each table takes every flight.
    """

    tasks: tuple[DemoTask, ...]
    flights_by: str
    rows: int


class DemoSink(Protocol):
    """Where the rows go; `place` is shown, and is in the work folder.

    Attributes:
        worker_flags: what a worker is started with to write there.
        how_to_read: lines for whoever wants to see the rows afterwards; with any, the work folder stays.
    """

    place: Path
    worker_flags: tuple[str, ...]

    @property
    def how_to_read(self) -> tuple[str, ...]:
        """See the class."""
        ...

    def definition(self, table: str, part: str, key: Sequence[str] = ()) -> dict[str, Any]:
        """The sink of a task that appends to a table, or upserts by `key`; `part` tells tasks apart."""
        ...

    def counted(self, table: str, by: str) -> Mapping[Value, int]:
        """How many rows of a table that is appended to, by the values of a column; none without one."""
        ...

    def summed(self, table: str, by: str, column: str) -> Mapping[Value, int]:
        """The sums of a column, by the values of another one; none where there is no table."""
        ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """All rows; none where there is no table."""
        ...
