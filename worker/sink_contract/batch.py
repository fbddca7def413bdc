"""The batches of the contract: rows in lists, handed out as Spark hands them out."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.base import Answer, Field
    from worker.sinks.fence import Mark
    from worker.sinks.parts import Part, Rows, Take

Row: TypeAlias = "tuple[Any, ...]"


class ContractBatch:
    """A batch of two partitions; `computed` counts the times that it was computed."""

    partitions = 2

    def __init__(
        self, mark: Mark, rows: Sequence[Row], fields: Sequence[Field], session: SparkSession | None
    ) -> None:
        """`session` makes the frame for sinks that write by Spark."""
        self.mark = mark
        self.computed = 0
        self._rows = rows
        self._fields = fields
        self._session = session

    def check(self) -> None:
        """It is wanted."""

    def collect(self, limit: int) -> Rows | None:
        """All of it, if it is few enough."""
        if len(self._rows) > limit:
            return None
        self.computed += 1
        return list(self._rows)

    def scatter(self, take: Take) -> list[Part]:
        """Each partition has a copy of `take`, and the first is tried twice: the later attempt counts."""
        self.computed += 1
        middle = len(self._rows) // 2
        tries = ((0, self._rows[:middle]), (0, self._rows[:middle]), (1, self._rows[middle:]))
        parts = [
            pickle.loads(pickle.dumps(take))(partition, attempt, iter(rows))  # noqa: S301 - made the line before
            for attempt, (partition, rows) in enumerate(tries)
        ]
        return parts[1:]

    def write(self, write: Callable[[DataFrame], object]) -> int:
        """By Spark itself."""
        self.hand_over(write)
        return len(self._rows)

    def hand_over(self, use: Callable[[DataFrame], Answer]) -> Answer:
        """To Spark itself, too."""
        if self._session is None:
            raise TypeError("the contract's session is not set, and the sink writes by Spark")
        self.computed += 1
        columns = ", ".join(f"`{field.name}` {field.type}" for field in self._fields)
        return use(self._session.createDataFrame(list(self._rows), columns))

    def save(self, file_format: str, folder: str) -> int:
        """By Spark's own writer."""
        return self.write(lambda frame: frame.write.format(file_format).save(folder))

    def discard(self) -> None:
        """Computed, and no more."""
        self.computed += 1


class StoppedError(Exception):
    """A batch goes no further."""


class StoppedBatch(ContractBatch):
    """One that goes no further once it is computed, as where its bad rows could not be put aside."""

    def collect(self, limit: int) -> Rows | None:
        """All of it."""
        if super().collect(limit) is not None:
            raise StoppedError
        return None

    def scatter(self, take: Take) -> list[Part]:
        """Each partition."""
        super().scatter(take)
        raise StoppedError

    def save(self, file_format: str, folder: str) -> int:
        """In files."""
        super().save(file_format, folder)
        raise StoppedError
