"""The interface of sinks, and what they are handed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Rows = list[tuple[Any, ...]]
"""Some rows of a batch, their values in the order of the query's columns."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes: a task, and the fencing token its query runs under."""

    group: str
    task: str
    token: int

    def __str__(self) -> str:
        return f"task {self.task} of group {self.group}"


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
    """One micro-batch on its way into a sink."""

    batch_id: int
    checkpoint: str
    """The id of the checkpoint the batch belongs to: Spark's query id, the same after every restart."""
    frame: Any
    """The batch as Spark's DataFrame, for sinks whose rows do not pass through the driver."""

    def chunks(self, size: int) -> Iterator[Rows]:
        """The rows, at most `size` at a time, computed as they are taken; to be taken once.

        Even rows that nobody wants must be taken to the end: a query with state commits it only then.
        Raises when the query is being cut short.
        """
        ...


class Sink(ABC):
    """One task's place to write, in the order claim, prepare, write for each batch, close.

    The calls come from threads, never two at a time. Each raises `SinkError` if it cannot be done.
    """

    @abstractmethod
    def claim(self) -> None:
        """Raise the fence to the owner's token. To be called before the query reads anything.

        Raises:
            FencedError: a newer owner was here before.
        """

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
