"""What of a start is done before its task is granted: all that needs no token, and is short of reading.

That is the definition with its secrets, a session with the query's plan, and the ways to its checkpoint and
to its sink (docs/protocol.md §5.3). No fence is raised by it, no source read, and no code of the task runs.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from telemetry.foreign_errors import first_line_of
from worker.query_engine import ignore_step
from worker.secrets import Secrets
from worker.sinks.closing import let_go
from worker.sinks.factory import connect_sink
from worker.spark.query_writer import as_run
from worker.spark.reading.jdbc import require_harmless
from worker.spark.reading.reader import read
from worker.spark.starts import TURN_S, StartSteps
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from definition.document import Definition
    from worker.query_engine import UpcomingQuery
    from worker.sinks.base import Connected
    from worker.sinks.fence import Owner
    from worker.spark.backend import PlanSession, QuerySession, SparkBackend
    from worker.spark.reading.reader import Read
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

AT_ONCE: Final = 2
"""Plans that are made at the same time: what runs already comes first."""
KEPT: Final = 8
"""Plans that a worker has at a time, each with a session and a connection: as many as may start at once."""
FRESH_S: Final = 30.0
"""How long a plan is good for, in seconds: what it is made from outside of the definition may change."""
AGAIN_S: Final = 10.0
"""When one that could not be made is tried again, in seconds: claims may be answered many times in one."""
PATIENCE_S: Final = 5.0
"""How long a start waits for a plan that is being made, in seconds."""
FORMATS: Final = frozenset({"kafka", "rate", "rate-micro-batch"})
"""Sources whose columns Spark knows without looking at them."""


class PlannedQuery(NamedTuple):
    """The parts of a plan; `found` is None where its sources would have to be looked at for it."""

    session: PlanSession
    found: Read | None
    connected: Connected | None

    def query_session(self, owner: Owner, may_write: Callable[[], bool]) -> QuerySession:
        """As `PlanSession.query_session`; it closes all the parts, as does whoever fails to make it."""
        try:
            session = self.session.query_session(owner, may_write)
        except BaseException:
            self.close()
            raise
        session.output.connected = self.connected
        return session

    def close(self) -> None:
        """Let go of them: there is no query."""
        let_go(self.connected)
        self.session.close()


class Plan:
    """One query's; for any thread. Its parts are taken once, or closed."""

    def __init__(self, definition: Definition, parts: PlannedQuery) -> None:
        """`definition` is what it was made of: with its references resolved, and where it is to begin."""
        self._definition = definition
        self._lock = threading.Lock()
        self._parts: PlannedQuery | None = parts
        self._is_stale: Callable[[], bool] = lambda: False

    def lasts_until(self, is_stale: Callable[[], bool]) -> None:
        """`is_stale` is asked when it is taken: a start may wait long for its turn, with it in hand."""
        self._is_stale = is_stale

    def take(self, definition: Definition) -> PlannedQuery | None:
        """Its parts, which are the caller's then, if it was made of the same lately; else they are closed."""
        parts = self._taken()
        if parts is not None and (definition != self._definition or self._is_stale()):
            parts.close()
            return None
        return parts

    def close(self) -> None:
        """Let go of what was not taken. May block for a moment."""
        if (parts := self._taken()) is not None:
            parts.close()

    def _taken(self) -> PlannedQuery | None:
        with self._lock:
            parts, self._parts = self._parts, None
        return parts


def plan(backend: SparkBackend, query: UpcomingQuery, settings: SparkSettings, steps: StartSteps) -> Plan:
    """Make ready what the start of a query takes; to be called in a thread.

    Args:
        backend: one that plans ahead.
        query: of a declared task.
        settings: of this worker's Spark.
        steps: is told what may have to be waited for, and ends it there if nobody wants it any more.

    Raises:
        QueryError, SinkError: and whatever Spark raises; nothing is left of it then.
    """
    steps.at("its secrets")
    resolved = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(query.definition).definition
    require_harmless(resolved, query.definition, settings.allow_jdbc)
    definition = as_run(backend, resolved, query.reset)
    with ExitStack() as undone:
        steps.at("Spark, for a session")
        session = backend.plan_session(resolved.spark_conf, settings.checkpoint_of(query))
        undone.callback(session.close)
        found = read(session, definition, steps.at) if _is_known(session, definition) else None
        steps.at(f"the checkpoint {session.checkpoint.place}")
        session.checkpoint.last("offsets")
        steps.at("the sink")
        connected = None if definition.sink is None else connect_sink(definition.sink, query.group)
        undone.pop_all()
    return Plan(definition, PlannedQuery(session, found, connected))


def _is_known(session: PlanSession, definition: Definition) -> bool:
    """Whether Spark plans it without a look at what it reads: that may take long, or be another by then."""
    views = definition.views
    if not all(each.format in FORMATS and not each.static for each in views.values()):
        return False
    return definition.sql is None or session.reads_only(definition.sql, views.keys())


class PreparedStart:
    """A plan that is being made for one start, or was (`worker.query_engine.Prepared`)."""

    def __init__(
        self,
        task: str,
        make: Callable[[StartSteps], Plan],
        turns: asyncio.Semaphore,
        now: Callable[[], float],
    ) -> None:
        """`turns` bounds how many are made at once; `now` is a clock, in seconds."""
        self._steps = StartSteps(ignore_step, f"making {task} ready")
        self._make = partial(in_thread, f"spark-prepare {task}", partial(make, self._steps))
        self._turns = turns
        self._now = now
        self._has_begun = self._is_over = False
        self._made_at: float | None = None
        self._failed_at = now()
        self.making = asyncio.create_task(self._made())

    @property
    def is_stale(self) -> bool:
        """If it is of too long ago, or has failed some time ago."""
        if not self.making.done():
            return False
        if self._made_at is None:
            return self._now() - self._failed_at > AGAIN_S
        return self._now() - self._made_at > FRESH_S

    @property
    def is_gone(self) -> bool:
        """Whether it was taken or discarded, and nothing of it is under way."""
        return self._is_over and self.making.done()

    def discard(self) -> None:
        """End it at its next step; what is made is let go of in a thread."""
        self._is_over = True
        self._steps.give_up()
        self.making.add_done_callback(_close)

    async def taken(self, at: Callable[[str], None]) -> Plan | None:
        """The plan, for the start of its query; waits for one that is being made, and for none that is not.

        Args:
            at: is told what is waited for.
        """
        try:
            if self._has_begun and not self.making.done():
                at("what is being made ready for it")
                await asyncio.wait({self.making}, timeout=PATIENCE_S)
        except asyncio.CancelledError:
            self.discard()
            raise
        if not self.making.done() or self._made_at is None or self.is_stale:
            self.discard()
            return None
        self._is_over = True
        made = self.making.result()
        made.lasts_until(lambda: self.is_stale)
        return made

    async def _made(self) -> Plan:
        async with self._turns:
            self._has_begun = True
            making = asyncio.wrap_future(self._make())
            await asyncio.wait({making}, timeout=TURN_S)
        try:
            made = await making
        except Exception as error:
            self._failed_at = self._now()
            log.debug("a query could not be planned ahead", why=first_line_of(error))
            raise
        self._made_at = self._now()
        return made


def _close(making: asyncio.Task[Plan]) -> None:
    if not making.cancelled() and making.exception() is None:
        in_thread("spark-discard", making.result().close)


class PreparedStarts:
    """All that one engine makes ready."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is a clock, in seconds."""
        self._now = now
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._all: set[PreparedStart] = set()

    def begin(self, task: str, make: Callable[[StartSteps], Plan]) -> PreparedStart:
        """Have `make` called in a thread, which tells what it comes to; does not wait for it."""
        self._all = {each for each in self._all if not each.is_gone}
        prepared = PreparedStart(task, make, self._turns, self._now)
        self._all.add(prepared)
        return prepared

    def close(self) -> None:
        """Let go of all that no start has taken; returns at once."""
        for each in self._all:
            each.discard()
