"""The connection of a worker to its Spark Connect server."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import PySparkException

from definition.spark_conf import SQL_ON_FILES, SUBSTITUTE
from protocol.messages.membership import EngineEnd
from worker.query_engine import EngineDeath, NotedQuery, QueryError, SparkKind
from worker.spark.backend import SparkBackend
from worker.spark.causes import describe
from worker.spark.connect.adoption import ConnectLeftRunning, find_running
from worker.spark.connect.check_session import ConnectCheckSession
from worker.spark.connect.checkpoint import DataFrameCheckpoint
from worker.spark.connect.formats import formats_of
from worker.spark.connect.gate_channel import PREFIX
from worker.spark.connect.query_session import ConnectQuerySession, FoundSession, nobody_keeps_it
from worker.spark.connect.session_record import SessionRecord, end_queries, read_session_records
from worker.spark.connect.sessions import (
    DEADLINE_S,
    ConnectionLostError,
    Deadline,
    SessionClosedError,
    asking,
    end_session,
    open_session,
)
from worker.threads import DaemonPool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.connect.session import SparkSession

    from worker.sinks.fence import Owner
    from worker.spark.settings import SparkSettings

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",  # a task means the same on every worker
    "spark.sql.streaming.stopTimeout": "500ms",  # a stop that hangs gives its thread back
    SUBSTITUTE: "false",  # `${env:NAME}` in a task's SQL would read any variable of the server
    SQL_ON_FILES: "false",  # a task's files are those that its source names
}
LOST_AFTER_S = 10.0
"""How long a server may be silent. Its queries may be running or not; others shall have the tasks then."""
_PING_EVERY_S = 0.5
_PING_TIMEOUT_S = 5.0
_PING = "spark.sql.session.timeZone"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""Has `pyspark.sql.functions` make columns for a server; set by PySpark's own builder, too."""
_THREADS = 4
_CLOSE_TIMEOUT_S = 30.0
"""How long the end of a worker waits for the ends of its sessions."""
_STARTS = 2
"""How many queries may start at once: the server gives a Python process ten seconds to report."""


class ConnectBackend(SparkBackend):
    """A session that only asks whether the server is there; each query has one of its own."""

    url = None  # the server does not tell its clients

    def __init__(self, settings: SparkSettings, remote: str, session: SparkSession, kind: SparkKind) -> None:
        self.remote = remote
        self.kind = kind
        self.conf = {**DEFAULTS, **settings.conf}
        self.starting = threading.BoundedSemaphore(_STARTS)
        self.pool = DaemonPool(_THREADS, "spark-connect")
        self._place = settings.place
        self._session = session
        self._is_lost = False
        self._closing = threading.Event()
        self._mode = os.environ.get(_MODE)
        os.environ[_MODE] = "1"

    @classmethod
    def open(cls, settings: SparkSettings, remote: str) -> ConnectBackend:
        """Reach the server `remote`, and see that it takes the settings.

        Raises:
            QueryError: it does not answer, or refuses them; without the URL, which may carry a token.
        """
        deadline = Deadline(DEADLINE_S)
        session = open_session(remote, str(uuid4()), deadline)
        try:
            _set_all(session, settings)
            kind = _kind(session, settings)
        except BaseException:
            end_session(session)
            raise
        deadline.seconds = _PING_TIMEOUT_S
        return cls(settings, remote, session, kind)

    def is_loss(self, error: BaseException) -> bool:
        """No answer."""
        return isinstance(error, ConnectionLostError)

    def watch(self, died: Callable[[EngineDeath], None]) -> None:
        """By asking, twice a second."""
        threading.Thread(target=self._ping, args=(died,), name="spark-connect-watch", daemon=True).start()

    def query_session(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> ConnectQuerySession:
        """On the same server."""
        return ConnectQuerySession.new(self, owner, conf, checkpoint, may_write)

    def check_session(self, conf: Mapping[str, str]) -> ConnectCheckSession:
        """On the same server."""
        return ConnectCheckSession(self, conf)

    def left_running(
        self, owner: Owner, checkpoint: str, made_of: str, may_write: Callable[[], bool]
    ) -> ConnectLeftRunning | None:
        """In the session that the former owner has written down."""
        session: Any = self._session
        noted = SessionRecord(self.remote, owner, session, checkpoint).read()
        if noted is None:
            return None
        found = find_running(self.remote, noted.session, owner, made_of)
        if found is None:
            return None
        its_session = FoundSession(noted.session, found.session, found.status.left_out)
        query_session = ConnectQuerySession(self, owner, its_session, checkpoint, may_write)
        query_session.is_ours = False
        return ConnectLeftRunning(query_session, found.query, may_write)

    def end_former(self, owner: Owner, checkpoint: str) -> None:
        """That is in the session which the former owner has written down."""
        session: Any = self._session
        SessionRecord(self.remote, owner, session, checkpoint).end_former()

    def noted(self, folder: str) -> tuple[NotedQuery, ...]:
        """By the records of sessions."""
        session: Any = self._session
        return read_session_records(session, folder)

    def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """By its session."""
        newest = end_queries(self.remote, query.place, query.task, query.token)
        return None if newest is None else replace(query, token=newest)

    def let_go(self, session: SparkSession, *, is_kept: Callable[[], bool] = nobody_keeps_it) -> None:
        """End a session in the background; a lost server has none to end."""
        with contextlib.suppress(RuntimeError):  # nobody waits any more; it ends when its server misses us
            self.pool.submit(self._end, session, is_kept)

    def _end(self, session: SparkSession, is_kept: Callable[[], bool]) -> None:
        is_released = not self._is_lost
        try:
            with asking():
                is_released = is_released and not is_kept()
        except (PySparkException, ConnectionLostError, SessionClosedError):
            is_released = False  # nobody is there to be told
        end_session(session, release=is_released)

    def checkpoint(self, place: str) -> DataFrameCheckpoint:
        """Through the server."""
        session: Any = self._session
        return DataFrameCheckpoint(session, place)

    def kill(self) -> bool:
        """The server's JVM is not the worker's, and runs what others have there, too."""
        return False

    def close(self) -> None:
        """End what is still to be ended; the server goes on."""
        self._closing.set()
        self.pool.shutdown(wait=False)
        self.pool.join(_CLOSE_TIMEOUT_S)
        end_session(self._session, release=not self._is_lost)
        if self._mode is None:
            os.environ.pop(_MODE, None)

    def _ping(self, died: Callable[[EngineDeath], None]) -> None:
        heard_at = time.monotonic()
        while not self._closing.wait(_PING_EVERY_S):
            try:
                with asking():
                    self._session.conf.get(_PING)
                heard_at = time.monotonic()
            except SessionClosedError:
                self._lose("has been restarted, or has closed the session", died)
                return
            except Exception as error:  # noqa: BLE001 - whatever it says, that is no answer
                if time.monotonic() - heard_at > LOST_AFTER_S:
                    self._lose(f"does not answer: {_line(error)}", died)
                    return

    def _lose(self, what: str, died: Callable[[EngineDeath], None]) -> None:
        self._is_lost = True
        died(EngineDeath(f"the Spark Connect server {self._place} {what}", EngineEnd.LOST))


def _line(error: Exception) -> str:
    said = str(error) if isinstance(error, ConnectionLostError) else describe(error)
    return said.partition("\n")[0]


def _kind(session: SparkSession, settings: SparkSettings) -> SparkKind:
    try:
        with asking():
            version = session.version
        return SparkKind(version, formats_of(session))
    except ConnectionLostError as error:
        raise QueryError(f"the Spark Connect server {settings.place} does not answer: {error}") from None


def _set_all(session: SparkSession, settings: SparkSettings) -> None:
    for key, value in {**DEFAULTS, **settings.conf}.items():
        if key.lower().startswith(PREFIX):
            raise QueryError(f"--spark-conf {key}: names that begin with {PREFIX} are sparkherd's own")
        try:
            with asking():
                session.conf.set(key, value)
        except ConnectionLostError as error:
            raise QueryError(f"the Spark Connect server {settings.place} does not answer: {error}") from None
        except PySparkException as error:
            said = describe(error).partition("\n")[0]
            raise QueryError(
                f"--spark-conf {key}: cannot be set for a session of a Spark Connect server: {said}"
            ) from None
