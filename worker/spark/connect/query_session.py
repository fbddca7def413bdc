"""What one query needs on the server: a session, its checkpoint, its gate, its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import SQL
from pyspark.sql.connect.streaming.query import StreamingQuery
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from definition.intervals import trigger_interval_ms
from worker.query_engine import QueryError
from worker.spark.backend import QuerySession
from worker.spark.causes import describe
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.gate import ConnectGateControl, GateChannel
from worker.spark.connect.handle import RemoteHandle
from worker.spark.connect.query_output import ConnectQueryOutput
from worker.spark.connect.session_record import SessionRecord
from worker.spark.connect.sessions import new_session_id, open_session
from worker.spark.reading.relation_options import MAYBE_OPTIONS_IN_SQL, may_have_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import BoundedSemaphore

    from definition.scheduling import Scheduling
    from worker.lag.offset_log import Order
    from worker.sinks.fence import Owner
    from worker.threads import DaemonPool

_ASYNC_PROGRESS = "asyncProgressTrackingEnabled"
"""Spark's option of a sink to write offsets and commits from time to time only."""


class Server(Protocol):
    """What the queries at one server share."""

    remote: str
    conf: dict[str, str]
    pool: DaemonPool
    starting: BoundedSemaphore

    def let_go(self, session: Any) -> None:
        """End a query's session in the background."""
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


class ConnectQuerySession(QuerySession):
    """A session that only this query has; it ends with it."""

    writer_type: Any = DataStreamWriter
    query_type: Any = StreamingQuery

    def __init__(
        self,
        server: Server,
        owner: Owner,
        conf: Mapping[str, str],
        checkpoint: str,
        may_write: Callable[[], bool],
    ) -> None:
        self._server = server
        self._may_write = may_write
        self._session_id = new_session_id(owner.token)
        self.spark = open_configured(server, self._session_id, conf)
        self.checkpoint = DataFrameCheckpoint(self.spark, checkpoint)
        self.gate = ConnectGateControl(GateChannel(self.spark), server.pool)
        self.output = ConnectQueryOutput(owner, self.gate, self._session_id, checkpoint, may_write)
        self._record = SessionRecord(server.remote, owner, self.spark, checkpoint)

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

    def inherit(self) -> None:
        """A killed worker's query goes on; the owner before this one has written down where."""
        if not self._may_write():
            raise QueryError("the worker has lost its lease, so it may not end another's query")
        self._record.end_former()
        self._record.write(self._session_id)

    def start(self, writer: Any, begin: Callable[[], None]) -> RemoteHandle:
        """At the server, when it is its turn there."""
        told = writer._write_proto  # noqa: SLF001 - the server does not tell what a query was started with
        bounded = bool(told.available_now or told.once)
        late = told.options.get(_ASYNC_PROGRESS, "").lower() == "true"
        interval_ms = trigger_interval_ms(told.processing_time_interval)
        with self._server.starting:
            begin()
            query = self.output.begin(writer.option("checkpointLocation", self.checkpoint.place))
        return RemoteHandle(query, is_bounded=bounded, commits_late=late, interval_ms=interval_ms)

    def close(self) -> None:
        """Let go of the sink here; the session is ended in the background."""
        self.output.close()
        session: Any = self.spark
        self._server.let_go(session)


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
