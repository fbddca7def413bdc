"""Where a task's rows are that were put aside, and how they get from there into its sink."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from definition.sinks.sql import SQL_SINK
from definition.tables import read_table_name
from worker.query_engine import QueryError
from worker.sinks.closing import letting_go
from worker.sinks.database import connect
from worker.sinks.factory import newest_fence, open_sink
from worker.sinks.fence import fenced
from worker.sinks.quarantine.sql_replay import SqlReplay
from worker.sinks.quarantine.sql_store import SqlStore
from worker.spark.quarantine.identity import fence_of
from worker.spark.quarantine.player import Player
from worker.spark.quarantine.replay_names import replay_owner
from worker.spark.quarantine.spark_store import SparkStore
from worker.spark.reading.payload_formats import name as quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from definition.document import Definition
    from definition.sink import Sink as SinkDefinition
    from worker.sinks.base import Sink
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.sinks.quarantine.store import Choice, QuarantineStore
    from worker.spark.backend import SparkBackend
    from worker.spark.checks.check_session import CheckSession


class Place:
    """A quarantine, with what it takes to play rows of it again.

    `beside` moves rows in transactions if the sink's database has them; else None. `fence` is what replays
    are fenced by if it is elsewhere.
    """

    store: QuarantineStore
    beside: SqlReplay | None = None
    fence: str = ""

    def __init__(
        self, backend: SparkBackend, definition: Definition, owner: Owner, at: Callable[[str], None]
    ) -> None:
        """Nothing is opened yet.

        Args:
            backend: this worker's Spark.
            definition: of the task, with its references resolved.
            owner: of the task.
            at: is told what has to be waited for.
        """
        self.owner = owner
        self._backend = backend
        self._definition = definition
        self._at = at
        self._opened = ExitStack()

    @cached_property
    def session(self) -> CheckSession:
        """One of Spark's that nobody else has."""
        self._at("Spark, for a session")
        return self._opened.enter_context(closing(self._backend.check_session(self._definition.spark_conf)))

    @cached_property
    def player(self) -> Player:
        """Runs rows through the definition."""
        session = self.session
        self._at("Spark, to analyse the definition")
        return Player(session, self._definition)

    def sink(self, fence: str) -> Sink:
        """The task's sink, as replays write to it; to be claimed.

        Args:
            fence: in whose name.

        Raises:
            QueryError: the sink takes batches of its task's query only.
            SinkError: it cannot be used.
        """
        definition = self._sink_definition
        if definition.format == "fenced_files":
            raise QueryError(
                "sink.format: fenced_files takes the batches of its task's query and no other rows, so that"
                " nothing can be played again into it"
            )
        made = open_sink(definition, replay_owner(self.owner, fence), lambda: self.session.spark)
        if made is None:
            raise QueryError("sink: has no fence")
        return self._opened.enter_context(letting_go(made))

    def discard(self, choice: Choice) -> int:
        """Throw rows away, if the task is still its owner's; returns how many.

        Raises:
            FencedError: a newer owner has it.
        """
        if self.beside is not None:
            self.beside.claim()
            return self.beside.discard(choice)
        self._at("the fence of the sink")
        newest = newest_fence(self._sink_definition, self.owner, lambda: self.session.spark)
        if newest is not None and newest.token > self.owner.token:
            raise fenced(self.owner, newest)
        return self.store.discard(choice)

    def close(self) -> None:
        """Let go of all that was opened."""
        self._opened.close()

    @property
    def replaces(self) -> bool:
        """Whether a row takes the place of the one with its key that the sink has, whichever is younger."""
        return self._sink_definition.options.get("mode") == "upsert"

    @property
    def _sink_definition(self) -> SinkDefinition:
        if self._definition.sink is None:
            raise QueryError("sink: is required")
        return self._definition.sink

    def open(self, aside: PuttingAside) -> None:
        """Find out where the rows are."""
        if (beside := aside.beside) is not None:
            self.beside = SqlReplay(self._sink_definition.read_options(), self.owner, beside)
            self._opened.enter_context(closing(self.beside))
            self.store = self.beside.store
            return
        if aside.elsewhere is not None:
            self.fence = fence_of(aside.elsewhere)
            self.store = self._opened.enter_context(closing(self._elsewhere(aside.elsewhere)))

    def _elsewhere(self, place: SinkDefinition) -> QuarantineStore:
        options: Any = place.read_options()
        if place.format == SQL_SINK:
            return SqlStore(connect(options.url, self.owner), read_table_name(options.table), self.owner)
        spark = self.session.spark
        reading, table = _rows_of(spark, place, options)
        return SparkStore(spark, self.owner, place.shown, reading, table)


def opened(
    backend: SparkBackend,
    definition: Definition,
    owner: Owner,
    aside: PuttingAside,
    at: Callable[[str], None],
) -> Place:
    """The place that a definition names; to be closed."""
    place = Place(backend, definition, owner, at)
    try:
        place.open(aside)
    except BaseException:
        place.close()
        raise
    return place


def _rows_of(
    spark: SparkSession, place: SinkDefinition, options: Any
) -> tuple[Callable[[], DataFrame | None], str | None]:
    """How the rows of a format are read, and what statements call its table."""
    if place.format == "delta" and options.path is not None:
        table = f"delta.{quoted(options.path)}"
        return partial(_there, lambda: spark.read.format("delta").load(options.path)), table
    if place.table is not None:
        name = place.table
        return partial(_there, lambda: spark.table(name)), name
    if place.format == "fenced_files":
        return partial(_there, lambda: spark.read.format(options.format).load(options.path)), None
    raise QueryError(f"quarantine.format: rows of {place.format} cannot be looked at from here")


def _there(read: Callable[[], DataFrame]) -> DataFrame | None:
    """What is read; None where nothing was ever put aside."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    try:
        return read()
    except AnalysisException as error:
        if any(each in str(error) for each in _NOT_THERE):
            return None
        raise


_NOT_THERE = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
)
