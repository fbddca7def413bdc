"""The interface of sinks, and what they are handed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.sinks.fence import FenceRow, Mark
    from worker.sinks.parts import Part, Rows, Take


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a query: its name, and its type in the JSON form of Spark's schemas."""

    name: str
    type: str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a batch; a duplicate had been written before and was passed over.

    `total` counts the rows that the task has put into the sink, under any owner.
    """

    rows: int
    total: int
    duplicate: bool = False


class Batch(Protocol):
    """One micro-batch on its way into a sink; one of `scatter`, `save` and `discard` is to be called, once.

    Each computes the batch, and raises when the query is being cut short. So does `collect`, which may come
    before them and take their place.
    """

    mark: Mark

    @property
    def partitions(self) -> int:
        """In how many parts the batch is computed."""
        ...

    def collect(self, limit: int) -> Rows | None:
        """All rows, partition by partition; None if they are more than `limit`, or if to look does not pay.

        Of a batch that has more, some is computed in vain.
        """
        ...

    def scatter(self, take: Take) -> list[Part]:
        """Hand every partition to `take` where it is computed.

        Returns:
            What `take` made of each partition, in order; of several attempts at one, the one that counts.
        """
        ...

    def save(self, file_format: str, folder: str) -> int:
        """Write the batch as files into the new `folder`; returns the number of rows."""
        ...

    def discard(self) -> None:
        """Compute the rows though nobody wants them: a query with state commits it only then."""
        ...


class Sink(ABC):
    """One task's place to write, in the order claim, prepare, write for each batch, close.

    The calls come from threads, never two at a time. Each raises `SinkError` if it cannot be done.
    """

    @abstractmethod
    def claim(self) -> FenceRow:
        """Raise the fence to the owner's token; returns how far the task has come in this sink.

        To be called before the query reads anything.

        Raises:
            FencedError: a newer owner was here before.
        """

    @abstractmethod
    def newest(self) -> FenceRow | None:
        """What the sink knows of the task, None if it never saw it; nothing is changed, nor claimed."""

    @abstractmethod
    def prepare(self, fields: Sequence[Field]) -> None:
        """Make ready for rows of these columns.

        Raises:
            SchemaError: the sink cannot take them; the text names the column.
        """

    @abstractmethod
    def write(self, batch: Batch) -> Written:
        """Put the whole batch into the sink, or nothing of it.

        Raises:
            FencedError: a newer owner has raised the fence.
            OutOfOrderError: the batch does not follow the last one.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and files; may be called twice."""
