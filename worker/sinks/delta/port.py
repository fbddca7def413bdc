"""What the Delta sink asks of a table; Spark answers it, and a model of it in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from worker.sinks.base import Field
    from worker.sinks.delta.marks import Note, Seen

How: TypeAlias = Literal["append", "upsert", "overwrite"]
"""What becomes of the rows that are there: they stay, are replaced by key, or go."""


class Way(NamedTuple):
    """How rows are put into the table.

    Args:
        how: what becomes of those that are there.
        key: the columns of an upsert.
        folders: those of them that are texts, and that the table is laid apart by: of some Delta makes NULL.
    """

    how: How
    key: Sequence[str] = ()
    folders: Sequence[str] = ()


class Layout(NamedTuple):
    """The columns of a table that has none yet, and those that it is laid apart by."""

    fields: Sequence[Field]
    partition_by: Sequence[str]


class FencedTable(Protocol):
    """One table, and the ids of one task in it."""

    @property
    def place(self) -> str:
        """Its path or name."""
        ...

    def create(self) -> None:
        """Make it, without columns, if it is not there and its place is one for a fence."""
        ...

    def look(self, depth: int) -> Seen | None:
        """The newest state of it; None if it is not there.

        Args:
            depth: in how many of the newest commits to look for the note.
        """
        ...

    def swap(
        self, expected: int, versions: Mapping[str, int], note: Note, layout: Layout | None = None
    ) -> bool:
        """Set the numbers in one commit, if the task's number is as expected in that commit.

        Returns:
            Whether it was. False also if another commit was in the way, which may have changed nothing here.
        """
        ...

    def cluster(self, columns: Sequence[str]) -> None:
        """Lay rows that come close to each other by these columns."""
        ...

    def add(self, fields: Sequence[Field]) -> None:
        """Add columns."""
        ...

    def write(self, frame: DataFrame, way: Way, note: Note) -> None:
        """Put the rows and the note's number into the table in one commit.

        Delta passes over the whole of it and says nothing if the number is not above the one that is there
        when it begins, and raises if that has been changed when it commits.
        """
        ...
