"""What one query needs on the server: a session, its checkpoint, its gate, its output."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import SQL
from pyspark.sql.connect.streaming.query import StreamingQuery
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from definition.intervals import trigger_interval_ms
from worker.left_out import NOTHING
from worker.query_engine import QueryError
from worker.spark.backend import QuerySession
from worker.spark.causes import describe
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.gate import ConnectGateControl
from worker.spark.connect.gate_channel import GateChannel
from worker.spark.connect.handle import RemoteHandle
from worker.spark.connect.query_output import ConnectQueryOutput
from worker.spark.connect.session_record import SessionRecord
from worker.spark.connect.sessions import new_session_id, open_session
from worker.spark.reading.relation_options import MAYBE_OPTIONS_IN_SQL, may_have_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import BoundedSemaphore

    from pyspark.sql.connect.session import SparkSession

    from definition.scheduling import Scheduling
    from worker.lag.offset_log import Order
    from worker.left_out import LeftOut
    from worker.sinks.fence import Owner
    from worker.threads import DaemonPool

_ASYNC_PROGRESS = "asyncProgressTrackingEnabled"
"""Spark's option of a sink to write offsets and commits from time to time only."""


def nobody_keeps_it() -> bool:
    """A session that nobody else has."""
    return False


class Server(Protocol):
    """What the queries at one server share."""

    remote: str
    conf: dict[str, str]
    pool: DaemonPool
    starting: BoundedSemaphore

    def let_go(self, session: Any, *, is_kept: Callable[[], bool] = nobody_keeps_it) -> None:
        """End a session in the background; if it `is_kept`, only the connection to it."""
        ...


def open_configured(server: Server, session_id: str, conf: Mapping[str, str]) -> Any:
    """A session with the server's settings and its own; it is ended if one of them is refused.

    The calling thread goes by it, as in a program of one session: PySpark has the server of the thread's
    session read a schema in words.
    """
    session: Any = open_session(server.remote, session_id)
    session._active_session.session = session  # noqa: SLF001 - where PySpark keeps it, by thread
    try:
        for key, value in {**server.conf, **conf}.items():
            session.conf.set(key, value)
    except BaseException:
        server.let_go(session)
        raise
    return session


NOT_ON_CONNECT: Final = (
    "has no effect on a Spark Connect server, whose pools no client can set: run the task on a worker with a"
    " Spark of its own (--spark-master), or take scheduling out of its definition"
)


class FoundSession(NamedTuple):
    """A session at the server, and what was left out of its query before its present owner had it."""

    session_id: str
    session: SparkSession
    left_out: LeftOut = NOTHING


class ConnectQuerySession(QuerySession):
    """A session that only this query has; it ends with it.

    `is_ours` is false as long as it belongs to a former owner who may come back.
    """

    writer_type: Any = DataStreamWriter
    query_type: Any = StreamingQuery

    def __init__(
        self,
        server: Server,
        owner: Owner,
        found: FoundSession,
        checkpoint: str,
        may_write: Callable[[], bool],
    ) -> None:
        session: Any = found.session
        self.spark = session
        self.checkpoint = DataFrameCheckpoint(session, checkpoint)
        self.channel = GateChannel(found.session)
        self.gate = ConnectGateControl(self.channel, server.pool, owner.token, found.left_out)
        self.output = ConnectQueryOutput(owner, self.gate, found.session_id, checkpoint, may_write)
        self._record = SessionRecord(server.remote, owner, session, checkpoint)
        self.is_ours = True
        self._server = server
        self._session_id = found.session_id
        self.owner = owner
        self._may_write = may_write

    @classmethod
    def new(
        cls,
        server: Server,
        owner: Owner,
        conf: Mapping[str, str],
        checkpoint: str,
        may_write: Callable[[], bool],
    ) -> ConnectQuerySession:
        """One that nobody else has."""
        session_id = new_session_id(owner.token)
        found = FoundSession(session_id, open_configured(server, session_id, conf))
        return cls(server, owner, found, checkpoint, may_write)

    def require_query(self, text: str) -> None:
        """By the server's parser."""
        require_query(self.spark, text)

    def sources_of(self, writer: Any) -> Order:
        """The plan is the server's."""
        del writer
        return ()

    def schedule(self, wanted: Scheduling | None) -> None:
        """Never: a client cannot reach the server's pools.

        Raises:
            QueryError: it wants any share.
        """
        if wanted is not None:
            raise QueryError.at("scheduling", NOT_ON_CONNECT, permanent=True)

    def inherit(self, made_of: str) -> None:
        """A killed worker's query goes on; the owner before this one has written down where."""
        if not self._may_write():
            raise QueryError("the worker has lost its lease, so it may not end another's query")
        self._record.end_former()
        self.note_down(self.owner.token)
        self.channel.describe(sealed(made_of, self._session_id))

    def note_down(self, token: int) -> None:
        """Say beside the checkpoint that the task's query is in this session, and who has it."""
        self._record.write(self._session_id, token)

    def start(self, writer: Any, begin: Callable[[], None]) -> RemoteHandle:
        """At the server, when it is its turn there."""
        told = writer._write_proto  # noqa: SLF001 - the server does not tell what a query was started with
        bounded = bool(told.available_now or told.once)
        late = told.options.get(_ASYNC_PROGRESS, "").lower() == "true"
        interval_ms = trigger_interval_ms(told.processing_time_interval)
        with self._server.starting:
            begin()
            query = self.output.begin(writer.option("checkpointLocation", self.checkpoint.place))
        return RemoteHandle(
            query, self.has_heir, is_bounded=bounded, commits_late=late, interval_ms=interval_ms
        )

    def has_it_taken_over(self) -> None:
        """The query that runs in it, all of whose batches go through a gate, is this owner's from now on."""
        self.is_ours = self.output.is_gated = True

    def has_heir(self) -> bool:
        """Whether a newer owner has taken the query over, so that it is to be left alone."""
        return self.channel.newest() > self.owner.token

    def close(self) -> None:
        """Let go of the sink here; the session is ended in the background, unless it is another owner's."""
        self.output.close()
        session: Any = self.spark
        self._server.let_go(session, is_kept=lambda: not self.is_ours or self.has_heir())


def sealed(made_of: str, session_id: str) -> str:
    """As a session has it among its settings: what a query is made of may have secrets in it.

    No two sessions have the same for the same, and nothing of it is written to a disk.
    """
    return sha256(f"{session_id} {made_of}".encode()).hexdigest()


def require_query(session: Any, text: str) -> None:
    """Refuse all SQL but queries, by the server, which is asked for columns: only a query stands in brackets.

    Raises:
        QueryError: it is none, or it may give options to a table.
    """
    if may_have_options(text):
        raise QueryError.at("sql", MAYBE_OPTIONS_IN_SQL, permanent=True)
    bracketed = f"({text.rstrip().rstrip(';')}\n)"
    try:
        DataFrame(SQL(bracketed), session).schema  # noqa: B018 - the question is what it raises
    except ParseException as error:
        said = describe(error).partition("\n")[0]
        raise QueryError.at(
            "sql", f"is no query: {said}; it is to be one SELECT that reads the sources"
        ) from error
    except AnalysisException:
        return  # `session.sql` says it better, with the right place in the text
