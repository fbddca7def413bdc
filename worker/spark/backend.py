"""What Spark in a JVM of the worker's own and Spark behind a server have to provide, each in its way.

All else about queries is shared: how they are launched, watched, stopped and reported. `classic` and
`connect` are the two packages that know which of them it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from protocol.messages.resources import WorkerResources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from definition.document import Trigger
    from definition.scheduling import Scheduling
    from worker.lag.offset_log import Order
    from worker.query_engine import EngineDeath, NotedQuery, QueryError, SparkKind
    from worker.sinks.fence import Owner
    from worker.spark.batches.batch_gate import GateControl
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.checks.check_session import CheckSession
    from worker.spark.kafka.brokers import Brokers
    from worker.spark.kafka.group_progress import GroupProgress
    from worker.spark.query_output import QueryOutput
    from worker.spark.whereabouts import Whereabouts


class Activity(Enum):
    """What Spark is at with a query.

    RESTING: it waits for its trigger. LOOKING: it looks whether there is something to do, or begins. WORKING:
    it does a batch.
    """

    RESTING = auto()
    LOOKING = auto()
    WORKING = auto()

    @classmethod
    def of(cls, *, is_trigger_active: bool, is_data_available: bool, message: str) -> Activity:
        """By Spark's own status of the query."""
        if is_trigger_active:
            return cls.WORKING if is_data_available else cls.LOOKING
        return cls.LOOKING if message.startswith("Initializing") else cls.RESTING


class Handle(ABC):
    """A query that Spark runs. A call may block, and raises what `is_loss` knows if Spark is gone."""

    query: Any
    """PySpark's own."""
    is_bounded: bool
    """Whether it comes to an end by itself."""
    commits_late: bool
    """Whether Spark reports batches before its checkpoint knows of them (`asyncProgressTrackingEnabled`)."""
    interval_ms: int | None = None
    """Of its trigger, in milliseconds; None if a batch begins as soon as the one before is done."""
    outlives: ClassVar[bool] = False
    """Whether it goes on without its worker, and its next owner may take it over as it runs."""
    stopped: ClassVar[str] = "the query ended by itself, which nobody had asked for"
    """What is said where it is over, nothing was wrong, and its worker has not asked for it."""

    @abstractmethod
    def last_batch(self) -> int:
        """The last finished batch, -1 before the first."""

    @abstractmethod
    def progress(self, after: int) -> Sequence[Mapping[str, Any]]:
        """Spark's records of the batches later than `after`, as far as it keeps them, oldest first."""

    def spilled_bytes(self) -> int | None:
        """What its batches have spilled to disk so far; None where Spark does not tell."""
        return None

    @abstractmethod
    def activity(self) -> Activity:
        """What Spark is at with it."""

    def is_resting(self) -> bool:
        """Whether no batch is under way."""
        return self.activity() is not Activity.WORKING

    def whereabouts(self) -> Whereabouts | None:
        """What it is at right now, for one that gets nowhere; None where nobody can tell."""
        return None

    @abstractmethod
    def has_terminated(self) -> bool:
        """Whether nothing of it runs any more."""

    @abstractmethod
    def failure(self) -> QueryError | None:
        """Why it failed; None if nothing was wrong."""

    def has_passed_on(self) -> bool:
        """Whether a newer owner has taken it over or ended it; for this worker it is over then."""
        return False

    def begin_no_more(self) -> None:  # noqa: B027 - nothing, where Spark cannot be told so
        """Have no further batch planned; one that is under way goes on, and the query ends behind it."""

    @abstractmethod
    def halt(self) -> None:
        """Have Spark end it; returns when it has, or after a short while, and may be called again."""


class QuerySession(ABC):
    """What one query is made of before it runs: a session of its own, its checkpoint, its way out.

    `writer_type` and `query_type` are PySpark's classes, which an entry point's result is checked against.
    """

    spark: SparkSession
    checkpoint: CheckpointFolder
    gate: GateControl
    output: QueryOutput
    writer_type: type[DataStreamWriter]
    query_type: type[StreamingQuery]

    @abstractmethod
    def require_query(self, text: str) -> None:
        """Refuse all SQL but queries, before `session.sql` would execute it, and what no task's SQL may do.

        What of the latter can be told only this Spark knows (docs/security.md).

        Raises:
            QueryError: it is a statement of another kind, or it holds one.
            ParseException: it does not parse.
        """

    @abstractmethod
    def sources_of(self, writer: DataStreamWriter) -> Order:
        """The sources that stream into a query, in the order of its plan, which is that of its offset log.

        Args:
            writer: what the query is made by.

        Returns:
            The place of each in the definition, None of one that is not Kafka's; empty if it cannot be told.
        """

    @abstractmethod
    def schedule(self, wanted: Scheduling | None) -> None:
        """Give the query the share of the executors that its definition wants.

        Raises:
            QueryError: this Spark cannot.
        """

    @abstractmethod
    def inherit(self, made_of: str) -> None:
        """End what a former owner may have left running; the fence is up already.

        Args:
            made_of: a digest of what the query is made of, to be noted down where it may outlive its worker.
        """

    @abstractmethod
    def start(self, writer: DataStreamWriter, begin: Callable[[], None]) -> Handle:
        """Start the query that `writer` describes.

        Args:
            writer: what a query is made by.
            begin: is called right before Spark is asked to; what it raises ends the start there.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of everything once the query is over, or was never started. Never blocks for long."""


class PlanSession(ABC):
    """A session that a query is planned in before it is known under which token it runs, if it does.

    `checkpoint` is where the query keeps its progress.
    """

    spark: SparkSession
    checkpoint: CheckpointFolder

    @abstractmethod
    def require_query(self, text: str) -> None:
        """As `QuerySession.require_query`."""

    @abstractmethod
    def reads_only(self, text: str, views: Collection[str]) -> bool:
        """Whether nothing but those views has to be looked at to plan a query in SQL."""

    @abstractmethod
    def query_session(self, owner: Owner, may_write: Callable[[], bool]) -> QuerySession:
        """The session of the query itself, for which the plan is good; it is closed in place of this one.

        Args:
            owner: the task, and the token it runs under.
            may_write: the worker's lease on itself; may be asked from any thread.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of it, for there will be no query. Never blocks for long."""


class TakenOver(NamedTuple):
    """A query that has a new owner, and the last batch that it had finished before, if any."""

    handle: Handle
    committed: int | None


class LeftRunning(ABC):
    """A query of a former owner's that is made of the same as one that is to be started.

    `session` is the one that it runs in. Until it was taken over, `session.close()` leaves it running.
    """

    session: QuerySession

    @abstractmethod
    def take_over(self, trigger: Trigger | None, at: Callable[[str], None]) -> TakenOver | None:
        """Have it, and hold its next batch: none is under way then, and the sink may be claimed.

        Args:
            trigger: by which it was started.
            at: is called with what has to be waited for, and raises if nobody wants it any more.

        Returns:
            None if it has ended meanwhile, has a newer owner, or the batch under way takes too long.

        Raises:
            QueryError: the worker has lost its lease.
        """

    @abstractmethod
    def go_on(self) -> None:
        """The sink is claimed: let the next batch begin, under the new owner's token."""


class SparkBackend(ABC):
    """One Spark, as long as a worker lives; what it is asked may block, `watch` excepted.

    `url` is Spark's own web page, if it has one; `kind` says which Spark it is.
    `brokers` answers questions about topics, `groups` tells consumer groups of progress; None where no client
    of Kafka's is within reach. `plans_ahead` says whether queries can be planned before they are to start.
    """

    plans_ahead: ClassVar[bool] = False

    url: str | None
    kind: SparkKind
    brokers: Brokers | None = None
    groups: GroupProgress | None = None

    @abstractmethod
    def is_loss(self, error: BaseException) -> bool:
        """Whether a call failed because Spark is gone or going, which `watch` tells; never blocks."""

    @abstractmethod
    def watch(self, died: Callable[[EngineDeath], None]) -> None:
        """Call `died` from a thread of its own, once, unless `close` ends it."""

    @abstractmethod
    def query_session(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> QuerySession:
        """A session for a query of the owner's task that keeps its progress in the folder `checkpoint`.

        Args:
            owner: the task, and the token it runs under.
            conf: settings of the query's own session.
            checkpoint: path or URL.
            may_write: the worker's lease on itself; may be asked from any thread.
        """

    def plan_session(self, conf: Mapping[str, str], checkpoint: str) -> PlanSession:
        """A session to plan a query in that may be to start soon; only where `plans_ahead`.

        Args:
            conf: settings of the query's own session.
            checkpoint: path or URL.
        """
        raise NotImplementedError

    @abstractmethod
    def check_session(self, conf: Mapping[str, str]) -> CheckSession:
        """A session for a check; to be called in the thread that does it.

        Args:
            conf: settings of that session.
        """

    def left_running(
        self, owner: Owner, checkpoint: str, made_of: str, may_write: Callable[[], bool]
    ) -> LeftRunning | None:
        """The query that a former owner of the task has left running, if `owner` may have it as it is.

        Args:
            owner: the task, and the token it is to run under.
            checkpoint: path or URL.
            made_of: a digest of what the query is to be made of.
            may_write: the worker's lease on itself.

        Returns:
            None too where no query outlives its worker.
        """
        del owner, checkpoint, made_of, may_write
        return None

    @abstractmethod
    def end_former(self, owner: Owner, checkpoint: str) -> None:
        """End the query that a former owner of the task has left running, if there can be one."""

    @abstractmethod
    def noted(self, folder: str) -> Sequence[NotedQuery]:
        """The queries that owners have noted down in the folder of a group's checkpoints.

        Only those that may outlive their workers; they may be over.

        Raises:
            QueryError: that cannot be read now.
        """

    def resources(self, folder: str | None) -> WorkerResources:
        """What it takes of this machine, of which a Spark elsewhere takes nothing.

        Args:
            folder: of the checkpoints of a group; None if they are not asked for.
        """
        del folder
        return WorkerResources()

    @abstractmethod
    def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """End it, if this Spark has it and it is not over; as of `worker.query_engine.QueryEngine`."""

    @abstractmethod
    def checkpoint(self, place: str) -> CheckpointFolder:
        """The checkpoint at a path or URL, whoever's it is."""

    @abstractmethod
    def kill(self) -> bool:
        """End all that it runs at once, and with no word to it; whether that can be done from here."""

    @abstractmethod
    def close(self) -> None:
        """Let go of Spark, whatever state it is in."""
