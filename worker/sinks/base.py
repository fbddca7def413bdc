"""The interface of sinks, and what they are handed (docs/sinks.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from worker.left_out import NOTHING, LeftOut
from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from definition.sink import Sink as SinkDefinition
    from worker.sinks.aside import Aside, Beside
    from worker.sinks.fence import FenceRow, Mark, Owner
    from worker.sinks.parts import Part, Rows, Take


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a query: its name, and its type in the JSON form of Spark's schemas."""

    name: str
    type: str | dict[str, Any]


class Finding(NamedTuple):
    """What is to be said of one place in the definition; a problem unless it `is_fine`."""

    path: str
    text: str
    is_fine: bool = False


class Condition(NamedTuple):
    """What a sink's place asks of each row, and refuses the whole batch for if one row does not meet it.

    Args:
        name: what the place calls it; in causes and with rows that are put aside.
        where: a condition of SQL over the columns of the query. A row meets it only where it is true, and not
            where it is NULL.
    """

    name: str
    where: str


class Connected(Protocol):
    """A place that a sink was connected to before its task was granted, by `Sink.connect`."""

    def close(self) -> None:
        """Let go of it; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class SinkTask:
    """What a sink is opened with: who writes, and where to.

    Args:
        owner: the task, and the token it runs under.
        definition: its `sink`, secrets filled in.
        options: `definition.options`, read as what the format says they are.
        beside: how it is to put rows aside beside the others; only a sink `sql` is given that.
        session: gives one of Spark's, classic or Connect, to look at the place and to make it ready in; a
            batch brings its own. None where a sink is asked for its fence before any Spark is up.
        connected: what `Sink.connect` has returned for the same definition, if that was asked: the sink's to
            use and to close.
    """

    owner: Owner
    definition: SinkDefinition
    options: Any
    session: Callable[[], SparkSession] | None = None
    beside: Beside | None = None
    connected: Connected | None = None

    @property
    def spark(self) -> SparkSession:
        """The session, opened when it is first asked for.

        Raises:
            SinkError: there is none.
        """
        if self.session is None:
            raise SinkError(f"{self.owner}: the sink {self.definition.shown} can be asked by Spark only")
        return self.session()


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a batch; a duplicate had been written before and was passed over.

    `total` counts the rows that the task has put into the sink, under any owner; `left_out` those that the
    sink itself has put aside.
    """

    rows: int
    total: int
    duplicate: bool = False
    left_out: LeftOut = NOTHING


class Batch(Protocol):
    """One micro-batch on its way into a sink; one of the last five methods is to be called, once.

    `check` is for a sink that is busy with it for long in steps of its own.

    Each computes the batch, and raises when the query is being cut short. So does `collect`, which may come
    before them and take their place.
    """

    mark: Mark

    @property
    def partitions(self) -> int:
        """In how many parts the batch is computed."""
        ...

    def check(self) -> None:
        """Raise if the query is being cut short, or the worker may not write any more."""
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

    def write(self, write: Callable[[DataFrame], object]) -> int:
        """Have Spark write the batch: `write` is given it, and has it computed once and no more.

        Returns:
            The number of rows that were computed.
        """
        ...

    def hand_over(self, use: Callable[[DataFrame], Answer]) -> Answer:
        """As `write`, for a sink that learns from its place how many rows came there: nothing is counted.

        Returns:
            What `use` returns.
        """
        ...

    def save(self, file_format: str, folder: str) -> int:
        """Write the batch as files into the new `folder`; returns the number of rows."""
        ...

    def discard(self) -> None:
        """Compute the rows though nobody wants them: a query with state commits it only then."""
        ...


@runtime_checkable
class Sifted(Protocol):
    """What a batch has besides, of which rows are left out before the sink sees it."""

    @property
    def aside(self) -> Sequence[Aside]:
        """Those that are to be put aside with it; known when it was computed."""
        ...

    @property
    def left_out(self) -> LeftOut:
        """How many were left out; known when it was computed."""
        ...


@runtime_checkable
class Lookable(Sifted, Protocol):
    """What such a batch has for a quarantine elsewhere, which has to have rows before the sink has others."""

    @property
    def rows(self) -> int:
        """All that were computed; known when they were."""
        ...

    @property
    def conditions(self) -> Sequence[Condition]:
        """The sink's, by which rows of it are put aside."""
        ...

    def put_first(self, put: Callable[[Rows], None], *, is_staged: bool, is_clean: bool) -> None:
        """Have `put` called when it is known which rows are put aside, and before the sink's place has any.

        Args:
            put: puts them aside; raises if the sink is to have nothing. It is given those of the other rows
                that have come to the driver, which the sink has not seen.
            is_staged: whether the sink keeps the rows of a batch where they do not count until it has
                computed them all. Else the batch is looked at, and `put` called, now.
            is_clean: whether it is likely that none is put aside, so that it pays to look in passing.
        """
        ...

    def pass_over(self) -> None:
        """The place has it: whatever is computed of it now, nothing is put aside or counted any more."""
        ...

    def of_rows(self, rows: Rows, fields: Sequence[Field], mark: Mark) -> Batch:
        """A batch of other rows, in the session of this one."""
        ...


class Sink(ABC):
    """One task's place to write, in the order open, claim, prepare, write for each batch, close.

    The calls come from threads, never two at a time. Each raises `SinkError` if it cannot be done.
    """

    stages: ClassVar[bool] = False
    """Whether `write` has the batch collected, scattered or saved as a whole before any row of it counts.

    What such a batch puts aside elsewhere is found in passing. A sink that does not say so has its batches
    computed once before, and kept in Spark's cache.
    """

    @classmethod
    @abstractmethod
    def open(cls, task: SinkTask) -> Self:
        """The sink of a task; nothing is looked at yet.

        Raises:
            SinkError: the options are of no use on this worker.
        """

    @classmethod
    def connect(cls, task: SinkTask) -> Connected | None:
        """Reach the place while another worker still has the task, so that `open` need not; changes nothing.

        Args:
            task: of an owner that is nobody: who gets the token is not known yet.

        Returns:
            What `SinkTask.connected` is to be; None where nothing is gained by that.
        """
        del task
        return None

    @classmethod
    def inspect(cls, task: SinkTask, fields: Sequence[Field]) -> Iterable[Finding]:
        """What the sink would say of a query's columns; looks, and changes nothing.

        Raises:
            SchemaError: it cannot take them.
        """
        del fields
        shown = f"what the sink {task.definition.shown} takes is found out when the task runs"
        return [Finding("sink", shown, is_fine=True)]

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it writes, as a person may see it: without secrets."""

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

    def conditions(self) -> Sequence[Condition]:
        """What the place asks of each row, as far as that is known; may be asked once it is prepared.

        With `on_error: quarantine`, rows that do not meet one of them are put aside, and the sink never sees
        them. Others are never asked: there the place itself refuses the batch.
        """
        return ()

    def check_rows(self, rows: Rows) -> None:
        """Raise if the place cannot hold one of the rows that `Batch.collect` or `Batch.scatter` bring.

        It is asked before other rows of their batch are put aside elsewhere: if `write` were the first to say
        so, the batch would be put aside by then, and could not be done by a definition that is mended.

        Raises:
            SinkError: it cannot; the text names the column.
        """
        del rows

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
