"""A Spark without Spark, behind `worker.spark.backend`: what a test of the engine needs of one.

Its tasks are entry points of the module `tested`, whose function may do what the test wants a start to do.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from protocol.connectors import Formats
from worker.query_engine import SparkKind, ignore_step
from worker.spark.backend import Activity, Handle, QuerySession, SparkBackend
from worker.spark.batches.batch_gate import BatchGate
from worker.spark.checkpoint_rules import Checkpoint, knows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from definition.scheduling import Scheduling
    from protocol.messages.tasks import Reached
    from worker.query_engine import EngineDeath, NotedQuery, QueryError
    from worker.sinks.fence import Owner
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.checks.check_session import CheckSession


def may_block() -> None:
    """What the real thing may take long for is nothing for the event loop."""
    assert asyncio._get_running_loop() is None, "Spark is asked in the event loop"


class FakeWriter:
    """What an entry point returns."""

    def queryName(self, _name: str) -> FakeWriter:  # noqa: N802 - PySpark's name
        """As Spark's."""
        return self


class FakeHandle(Handle):
    """A query that runs until it is halted, or the test ends it."""

    query = None
    is_bounded = False

    def __init__(self, *, commits_late: bool) -> None:
        self.commits_late = commits_late
        self.over = threading.Event()
        self.halts = 0

    def last_batch(self) -> int:
        """It does no batches."""
        may_block()
        return -1

    def progress(self, after: int) -> list[Mapping[str, Any]]:
        """Likewise."""
        may_block()
        del after
        return []

    def activity(self) -> Activity:
        """None, ever."""
        may_block()
        return Activity.RESTING

    def has_terminated(self) -> bool:
        """Whether it was halted."""
        may_block()
        return self.over.is_set()

    def failure(self) -> QueryError | None:
        """Nothing ever goes wrong."""
        may_block()
        return None

    def halt(self) -> None:
        """End it."""
        may_block()
        self.halts += 1
        self.over.set()


class FakeQueryOutput:
    """Has no sinks."""

    is_gated = True
    total = None

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.hidden: tuple[str, ...] = ()
        self.at = ignore_step
        self.claimed: list[Any] = []
        self.fence = None


class FakeCheckpoint:
    """Never used, and otherwise as it should be."""

    place = "nowhere"

    def require(self, reached: Reached) -> None:
        """It knows of no batch."""
        knows_of(self.place, None, reached)

    def verify(self, _owner: Owner, _rows: Any) -> Checkpoint:
        """Nothing to find fault with, and no batch."""
        return Checkpoint(self.place)

    def read(self, _name: str) -> None:
        """There are no files."""


class FakeQuerySession(QuerySession):
    """One query's session."""

    writer_type: Any = FakeWriter
    query_type: Any = FakeHandle

    def __init__(self, backend: FakeBackend, owner: Owner, may_write: Callable[[], bool]) -> None:
        self._backend = backend
        self.owner = owner
        self.spark: Any = None
        self.checkpoint: Any = FakeCheckpoint()
        self.gate = BatchGate(may_write)
        self.output: Any = FakeQueryOutput(owner)
        self.closed = threading.Event()
        self.closings = 0

    def require_query(self, text: str) -> None:
        """Everything is one."""

    def sources_of(self, writer: Any) -> tuple[str, ...]:
        """It has no plan."""
        del writer
        return ()

    def schedule(self, wanted: Scheduling | None) -> None:
        """There is nothing to share."""
        del wanted

    def inherit(self, made_of: str) -> None:
        """There is nobody before."""
        del made_of
        may_block()

    def start(self, writer: Any, begin: Callable[[], None]) -> FakeHandle:
        """Start it."""
        may_block()
        begin()
        del writer
        handle = FakeHandle(commits_late=self._backend.commits_late)
        self._backend.started[self.owner.task] = handle
        return handle

    def close(self) -> None:
        """Remembered."""
        may_block()
        self.closings += 1
        self.closed.set()


class FakeBackend(SparkBackend):
    """Runs as long as the test wants."""

    url = None
    commits_late = False
    """Whether the queries that it starts do."""

    def __init__(self) -> None:
        self.started: dict[str, FakeHandle] = {}
        self.sessions: list[FakeQuerySession] = []
        self.ended: list[Owner] = []
        self.left: dict[str, tuple[NotedQuery, ...]] = {}
        self.swept: list[NotedQuery] = []
        self.end_trouble: Exception | None = None
        self.is_closed = self.is_killed = False
        self.kind = SparkKind("4.1.4", Formats())
        self.checkpoints: dict[str, CheckpointFolder] = {}

    def is_loss(self, error: BaseException) -> bool:
        """A connection that broke."""
        return isinstance(error, ConnectionError)

    def watch(self, died: Callable[[EngineDeath], None]) -> None:
        """It never dies by itself; `die` is for the test."""
        self.die = died

    def checkpoint(self, place: str) -> CheckpointFolder:
        """One with what the test has put there."""
        may_block()
        return self.checkpoints[place]

    def query_session(
        self, owner: Owner, conf: Mapping[str, str], checkpoint: str, may_write: Callable[[], bool]
    ) -> FakeQuerySession:
        """A session for one more query."""
        may_block()
        del conf, checkpoint
        session = FakeQuerySession(self, owner, may_write)
        self.sessions.append(session)
        return session

    def check_session(self, conf: Mapping[str, str]) -> CheckSession:
        """None: nothing of a check is without Spark."""
        raise NotImplementedError

    def end_former(self, owner: Owner, checkpoint: str) -> None:
        """Remembered."""
        may_block()
        del checkpoint
        self.ended.append(owner)

    def noted(self, folder: str) -> tuple[NotedQuery, ...]:
        """What the test has put there."""
        may_block()
        return self.left.get(folder, ())

    def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """Remembered."""
        may_block()
        if self.end_trouble is not None:
            raise self.end_trouble
        self.swept.append(query)
        return None

    def kill(self) -> bool:
        """Remembered."""
        self.is_killed = True
        return True

    def close(self) -> None:
        """Remembered."""
        may_block()
        self.is_closed = True
