"""What runs queries: the interface that Spark and the tests' fake both keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from protocol.messages.tasks import TaskHome
from worker.costs import NO_COSTS, Costs
from worker.left_out import NOTHING, LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from definition.document import Definition
    from protocol.connectors import Formats
    from protocol.messages.checks import Begin, CheckResult
    from protocol.messages.lag import TaskLag
    from protocol.messages.membership import EngineEnd
    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from protocol.messages.resources import WorkerResources
    from protocol.messages.tasks import Reached, TaskReset


class OfTask:
    """What of a task says where the progress of its query is kept."""

    __slots__ = ()
    group: str
    task: str
    reset: TaskReset | None
    home: TaskHome | None

    @property
    def resets(self) -> int:
        """The number of its last reset, 0 before the first."""
        return 0 if self.reset is None else self.reset.number

    @property
    def known_as(self) -> TaskHome:
        """The names that whatever outlives the query knows it by: its checkpoint, sinks, quarantines."""
        return self.home or TaskHome(self.group, self.task)


@dataclass(frozen=True, slots=True)
class QuerySpec(OfTask):
    """One streaming query to run: the task, the fencing token it is run under, and its last reset.

    `reached` is how far the task had come when the token was granted, and in which checkpoint. `home` are the
    names that checkpoint and sink know it by, None if these are the group's and its own.
    """

    group: str
    task: str
    token: int
    definition: Definition
    reset: TaskReset | None = None
    reached: Reached | None = None
    home: TaskHome | None = None


@dataclass(frozen=True, slots=True)
class UpcomingQuery(OfTask):
    """A query that may be to run here soon: of a task that another worker has not let go of yet.

    As `QuerySpec`, without what is known only when it is granted.
    """

    group: str
    task: str
    definition: Definition
    reset: TaskReset | None = None
    home: TaskHome | None = None


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A definition to be looked at, of no task yet: at most `rows` rows, from which end of its sources."""

    group: str
    definition: Definition
    rows: int
    begin: Begin


@dataclass(frozen=True, slots=True)
class NotedQuery:
    """A query that an owner has noted down because it may outlive its worker.

    Args:
        task: whose it is.
        token: the one that it was started under.
        place: where it runs, in the engine's own words; no two queries have the same.
    """

    task: str
    token: int
    place: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What a query has done since it was started.

    `busy_ms` is the time that its batches took, `left_out` what of their rows did not go to the sink, `costs`
    where the time went and what else they took.
    """

    batches: int = 0
    rows: int = 0
    busy_ms: int = 0
    left_out: LeftOut = NOTHING
    costs: Costs = NO_COSTS

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.batches + other.batches,
            self.rows + other.rows,
            self.busy_ms + other.busy_ms,
            self.left_out + other.left_out,
            self.costs + other.costs,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The last finished batch of a query, and all of them together; `metrics` is JSON-able and small."""

    batch_id: int | None
    metrics: dict[str, Any] = field(default_factory=dict)
    totals: Totals = Totals()


@dataclass(unsafe_hash=True)
class QueryError(Exception):
    """Why a query does not run: raised if it cannot be started, returned if it has failed since.

    Args:
        cause: one line first, details after it.
        fenced: a sink refused the token: the task belongs to somebody else by now.
        permanent: another start would end the same way.
        outage: what it needs is out of reach for now; however long that lasts, it is no failure of its own.
        quarantine: no worker is to run the task any more until somebody has looked.
        again: a limit ended it that it has not kept since its start, so that it counts as one of a series
            with the failures before it, however long ago these are.
        path: the place in the definition that it is about, and that the cause begins with; or None.
    """

    cause: str
    fenced: bool = False
    permanent: bool = False
    outage: bool = False
    path: str | None = None
    quarantine: bool = False
    again: bool = False

    @classmethod
    def at(cls, path: str, fault: str, *, permanent: bool = False, outage: bool = False) -> QueryError:
        """What is wrong with the definition at `path`."""
        return QueryError(f"{path}: {fault}", permanent=permanent, outage=outage, path=path)

    def __getattr__(self, name: str) -> str:
        """One has a cause, even if a class of the user's does not call `__init__`: what it was made with."""
        if name != "cause":
            raise AttributeError(name)
        return ": ".join([type(self).__name__, *map(str, self.args)])

    def __post_init__(self) -> None:
        """An entry point of the user's may raise it with anything."""
        self.cause = str(self.cause)

    def __str__(self) -> str:
        """The cause."""
        return self.cause


class NoQuarantineError(Exception):
    """A task puts no rows aside, so that there are none to be asked about; the text says so."""


class SparkKind(NamedTuple):
    """The version of a Spark, and the formats that it can read and write."""

    version: str
    formats: Formats


@dataclass(frozen=True, slots=True)
class EngineDeath:
    """The end of an engine that nobody had asked for; `how` is a line for people."""

    how: str
    end: EngineEnd
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """A query that has work, and has finished no batch for `silent_s` seconds.

    `where` is what it is at, None if that is not known. For `held_up_s` of these seconds others may have to
    answer: tasks that had what it was waiting for, or an engine that does not even say where it is.
    """

    silent_s: float
    where: str | None = None
    held_up_s: float = 0.0

    @property
    def own_s(self) -> float:
        """The seconds for which nobody else is known to have held it up."""
        return self.silent_s - self.held_up_s

    def __str__(self) -> str:
        """One line."""
        at = "" if self.where is None else f": {self.where}"
        return f"no batch has finished for {self.silent_s:,.0f} s though there is work{at}"


class Query(Protocol):
    """One running streaming query."""

    spec: QuerySpec

    @property
    def checkpoint(self) -> str | None:
        """The place that knows of every finished batch; None if there is none that is sure to."""
        ...

    @property
    def committed(self) -> int | None:
        """The last batch that was finished before this query began, by its checkpoint, or None."""
        ...

    def progress(self) -> Progress | None:
        """The last finished batch, None before the first. Never blocks."""
        ...

    @property
    def has_work(self) -> bool:
        """Whether there is data for a batch, as far as was seen lately. Never blocks."""
        ...

    @property
    def is_at_work(self) -> bool:
        """Whether a batch is being done, as far as was seen lately. Never blocks."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why it stands still though it runs, in one line; None if nothing is known. Never blocks."""
        ...

    @property
    def stall(self) -> Stall | None:
        """That it has work and gets no batch done within `limits.hung_s`; None if it does. Never blocks."""
        ...

    @property
    def heap_bytes(self) -> int | None:
        """What it holds of the heap of a JVM of its own; None if it has none, or nothing is known yet.

        That is what was in use after the last collection of garbage. Never blocks.
        """
        ...

    async def ended(self) -> QueryError | None:
        """Wait until the query is no longer running, whoever ended it; may be awaited by several.

        Returns:
            Why it failed. None for an orderly end: a stop that was asked for, or the end of a bounded query,
            which has done all that was there. Whether a query is bounded only the engine knows, for an entry
            point may have given it a trigger of its own.
        """
        ...

    @property
    def can_be_left(self) -> bool:
        """Whether it goes on without its worker, and its next owner may take it over as it runs.

        Its sink refuses its token as soon as it has another owner, whether that one takes it over or not.
        """
        ...

    async def leave(self, within_s: float) -> bool:
        """Wait until its next owner has taken it over; for one that can be left.

        Returns:
            Whether that was within `within_s` seconds; the query has ended then, as far as this worker goes.
            Else it runs on.
        """
        ...

    async def stop(self, timeout_s: float) -> None:
        """End the query in order: the batch in flight may finish within `timeout_s` seconds, then it is cut.

        Returns once nothing of the query runs any more. Stopping an ended query does nothing.
        """
        ...


class Prepared(Protocol):
    """What an engine makes ready for one query: for its start, or for nobody."""

    def discard(self) -> None:
        """Let go of it, for there will be no start; returns at once and raises nothing.

        To be called in the event loop. Nothing is left of it, at the latest, when the engine is closed.
        """
        ...

    @property
    def is_stale(self) -> bool:
        """Whether it is to be made ready anew: it is too old for a start, or has failed a while ago.

        Never blocks.
        """
        ...


def ignore_step(step: str) -> None:
    """Nobody wants to know what a start is waiting for."""
    del step


class QueryEngine(Protocol):
    """The engine of one worker."""

    async def open(self) -> None:
        """Bring the engine up; raises `QueryError` with what to change when that is impossible."""
        ...

    @property
    def prepares(self) -> int:
        """How many queries it can make ready at a time before they are to be started; 0 if none."""
        ...

    async def prepare(self, query: UpcomingQuery) -> Prepared | None:
        """Begin to make ready what the start of a query takes; does not wait until that is done.

        No source is read and no fence is raised, no code of the task runs, and nothing is written that
        anybody would see. Who cancels this gives it up.

        Returns:
            What `start` takes; None if there is nothing that could be done now.

        Raises:
            QueryError: it cannot be done; the start itself will say what is wrong.
        """
        ...

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> Query:
        """Start a query; raises `QueryError` when it cannot run. Several may start at once.

        Args:
            spec: what to run.
            at: is called, in the event loop, with each thing that the start may have to wait for.
            prepared: what was made ready for it, by this engine; gone when this returns or raises. If that
                has failed, the start does without.

        Who cancels a start gives it up: nothing of it runs any more when that is through.
        """
        ...

    async def settle(self, spec: QuerySpec, at: Callable[[str], object] = ignore_step) -> None:
        """See to it, without starting anything, that nobody who had the task before writes for it any more.

        Args:
            spec: the task, with the token.
            at: is called, in the event loop, with each thing that this may have to wait for.

        Raises:
            QueryError: it cannot be done now.
        """
        ...

    async def check(self, spec: CheckSpec, at: Callable[[str], object] = ignore_step) -> CheckResult:
        """What the engine says of a definition: its columns, what is wrong, some rows. Starts nothing.

        Who cancels this gives it up; the next one begins when nothing of it runs any more.

        Args:
            spec: what to look at.
            at: is called, in the event loop, with each thing that this may have to wait for.

        Raises:
            QueryError: the engine is not up, or was lost.
        """
        ...

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """List, show, play again or discard the rows that a task has put aside; its query may be running.

        Rows that are gone are simply not there: what was asked for twice is done once. Whatever is changed is
        refused under a token that is stale. Rows are told as they are, the newest batch first: who asks masks
        and cuts them. `total` counts all that `reason` and `name` meet; `stayed` those of the rows meant that
        could not be played or discarded, and `notes` say why.

        Who cancels this gives it up; it may still be done. The next one begins when nothing of it runs.

        Args:
            spec: the task as it runs now, or would run, with the token that it is owned under.
            request: what to do. Of a `list`, no more rows than its limit need be told.
            at: is called, in the event loop, with each thing that this may have to wait for.

        Raises:
            NoQuarantineError: the definition puts no rows aside.
            QueryError: the engine is not up, was lost, or could not do it.
        """
        ...

    @property
    def measures(self) -> bool:
        """Whether `lag` can tell anything, of whichever task."""
        ...

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        """How far a task is behind what it reads, be it run or not, or why that is not known.

        None if it reads nothing that can be asked.

        Raises:
            QueryError: the engine is not up, or is being lost: nothing can be told of any task.
        """
        ...

    @property
    def kafka_requests(self) -> Mapping[tuple[str, bool], int]:
        """How often it has asked brokers, by what for and whether they answered. Never blocks."""
        ...

    async def resources(self, group: str | None) -> WorkerResources | None:
        """What it takes of its machine, with the checkpoints of a `group`; None if it is not up.

        Raises:
            QueryError: that cannot be told now.
        """
        ...

    async def noted(self, group: str) -> Sequence[NotedQuery]:
        """The queries that owners of the group's tasks have noted down; they may be over.

        Raises:
            QueryError: that cannot be read now.
        """
        ...

    async def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """End it, if this engine can reach it and it is not over.

        Returns:
            The same query under a newer token than was noted down, if it has one: then it goes on.

        Raises:
            QueryError: it cannot be done now.
        """
        ...

    async def died(self) -> EngineDeath:
        """Wait until the engine is lost for good (the JVM died) and say how."""
        ...

    @property
    def spark(self) -> SparkKind | None:
        """Which Spark it is; None while it is not up, or is none."""
        ...

    @property
    def url(self) -> str | None:
        """Where a person can look into the engine (the Spark UI)."""
        ...

    def kill(self) -> bool:
        """End the engine and with it whatever it writes, in milliseconds; may be called from any thread.

        Returns:
            Whether that is so: an engine that is not the worker's own goes on.
        """
        ...

    async def close(self) -> None:
        """Take the engine down; every query is gone after it."""
        ...
