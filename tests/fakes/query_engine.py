"""An engine without Spark, behind `worker.query_engine.QueryEngine`; a test says how its queries fare."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from protocol.messages.checks import CheckedColumn, CheckResult
from protocol.messages.membership import EngineEnd
from protocol.messages.quarantine import QuarantineAnswer
from worker.costs import NO_COSTS, Costs
from worker.left_out import NOTHING, LeftOut
from worker.query_engine import EngineDeath, Progress, QueryError, SparkKind, Stall, Totals, ignore_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.lag import TaskLag
    from protocol.messages.quarantine import QuarantineRequest
    from protocol.messages.resources import WorkerResources
    from worker.query_engine import CheckSpec, NotedQuery, Prepared, QuerySpec, UpcomingQuery


class FakeQuery:
    """A query that runs until it is stopped or the test ends it."""

    def __init__(self, spec: QuerySpec, *, stops_slowly: bool) -> None:
        self.spec = spec
        self.checkpoint: str | None = f"/checkpoints/{spec.group}/{spec.task}"
        self.committed: int | None = None
        self.stops: list[float] = []
        self.stop_surprise: Exception | None = None
        self._may_stop = asyncio.Event()
        self._may_stop.set()
        self.stopping = asyncio.Event()
        trigger = spec.definition.trigger
        self.is_bounded = trigger is not None and trigger.available_now
        self._stops_slowly = stops_slowly
        self._progress: Progress | None = None
        self.has_work = False
        self.is_at_work = False
        self.trouble: str | None = None
        self.stall: Stall | None = None
        self.heap_bytes: int | None = None
        self.can_be_left = False
        self.left_for: list[float] = []
        self.heir: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._batch_done = asyncio.Event()
        self._ended: asyncio.Future[QueryError | None] = asyncio.get_running_loop().create_future()

    @property
    def is_running(self) -> bool:
        """Whether it has not come to its end."""
        return not self._ended.done()

    def progress(self) -> Progress | None:
        """The last batch the test has let it finish."""
        return self._progress

    async def ended(self) -> QueryError | None:
        """How it came to its end."""
        return await asyncio.shield(self._ended)

    async def leave(self, within_s: float) -> bool:
        """Until the test says whether somebody has taken it over."""
        self.left_for.append(within_s)
        is_taken = await asyncio.shield(self.heir)
        if is_taken:
            self._end(None)
        return is_taken

    async def stop(self, timeout_s: float) -> None:
        """End it; a slow one waits for its batch unless there is no time for that."""
        self.stops.append(timeout_s)
        self.stopping.set()
        if self.stop_surprise is not None:
            raise self.stop_surprise
        if self._stops_slowly and timeout_s > 0:
            waiting = {asyncio.ensure_future(self._batch_done.wait()), asyncio.ensure_future(self.ended())}
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waiting:
                    each.cancel()
        await self._may_stop.wait()
        self._end(None)

    # What a test does to it.

    def advance(
        self, batch_id: int, *, left_out: LeftOut = NOTHING, costs: Costs = NO_COSTS, **metrics: Any
    ) -> None:
        """It finishes a batch, of which rows are `left_out`, and which has its `costs`."""
        before = self._progress.totals if self._progress is not None else Totals()
        totals = before + Totals(1, metrics.get("rows", 0), metrics.get("batch_ms", 0), left_out, costs)
        self._progress = Progress(batch_id, metrics, totals)

    def grow(self, rows: int) -> None:
        """Its state has that many by now."""
        assert self._progress is not None
        self._progress = replace(
            self._progress, metrics={**self._progress.metrics, "state": {"rows": rows, "memory_bytes": 0}}
        )

    def finish_batch(self) -> None:
        """The batch that a slow stop waits for is done."""
        self._batch_done.set()

    def hold_stops(self) -> None:
        """Spark takes its time to end it, even one that is cut, until `let_stop`."""
        self._may_stop.clear()

    def let_stop(self) -> None:
        """Spark has ended it."""
        self._may_stop.set()

    def end(self, cause: str | None = None, *, fenced: bool = False) -> None:
        """It comes to its end by itself, which is a failure unless it is bounded."""
        if cause is None and not self.is_bounded:
            cause = "the query ended by itself, which nobody had asked for"
        self._end(None if cause is None else QueryError(cause, fenced))

    def _end(self, ended: QueryError | None) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)


class FakePrepared:
    """What it has made ready; a test looks at whether that was of use."""

    def __init__(self, query: UpcomingQuery) -> None:
        self.query = query
        self.is_discarded = self.is_stale = False

    def discard(self) -> None:
        """Remember it."""
        self.is_discarded = True


class FakeEngine:
    """Starts fake queries.

    `broken` maps tasks to the cause of their failing starts, for good of those in `permanent`, an outage of
    those in `away`; the sinks of those in `fenced` refuse the token; starts of tasks in `held` wait for their
    gate, and of those in `begun` cannot be called back there; what is asked about those in `unanswered`, or
    about "the records", waits for its gate; those noted down that `newer` has are under newer tokens; queries
    of those in `slow` stop when their batch is done.
    It makes ready so many queries as `prepares` says, but those in `unprepared`; `taken` is what starts took.
    """

    def __init__(self) -> None:
        self.started: list[FakeQuery] = []
        self.attempts: list[QuerySpec] = []
        self.prepares = 0
        self.prepared: list[FakePrepared] = []
        self.unprepared: dict[str, Exception | asyncio.Event] = {}
        self.taken: list[Prepared] = []
        self.settled: list[QuerySpec] = []
        self.unsettled: dict[str, asyncio.Event] = {}
        self.left: list[NotedQuery] = []
        self.swept: list[NotedQuery] = []
        self.newer: dict[NotedQuery, NotedQuery] = {}
        self.sweeps = 0
        self.unreadable: str | None = None
        self.unanswered: dict[str, asyncio.Event] = {}
        self.broken: dict[str, str] = {}
        self.permanent: set[str] = set()
        self.away: set[str] = set()
        self.fenced: set[str] = set()
        self.surprise: Exception | None = None
        self.held: dict[str, asyncio.Event] = {}
        self.begun: set[str] = set()
        self.slow: set[str] = set()
        self.cannot_open: str | None = None
        self.is_open = False
        self.kills = 0
        self.is_own = True
        self.kind: SparkKind | None = None
        self.committed: int | None = None
        self.lags: dict[str, TaskLag] = {}
        self.measured: list[str] = []
        self.cannot_measure: str | None = None
        self.takes: WorkerResources | None = None
        self.checks: list[CheckSpec] = []
        self.checks_given_up = 0
        self.check_gate = asyncio.Event()
        self.check_gate.set()
        self.check_result: CheckResult | QueryError = CheckResult(
            columns=(CheckedColumn("value", "bigint"),), rows=((2,), (4,))
        )
        self.quarantine_requests: list[tuple[QuerySpec, QuarantineRequest]] = []
        self.quarantine_given_up = 0
        self.quarantine_gate = asyncio.Event()
        self.quarantine_gate.set()
        self.quarantine_answer: QuarantineAnswer | Exception = QuarantineAnswer()
        self._death: asyncio.Future[EngineDeath] | None = None

    async def open(self) -> None:
        """Come up, unless the test wants otherwise."""
        if self.cannot_open is not None:
            raise QueryError(self.cannot_open)
        self._death = asyncio.get_running_loop().create_future()
        self.is_open = True

    async def prepare(self, query: UpcomingQuery) -> FakePrepared | None:
        """Make it ready, unless the test wants otherwise."""
        trouble = self.unprepared.get(query.task)
        if isinstance(trouble, asyncio.Event):
            await trouble.wait()
        elif trouble is not None:
            raise trouble
        self.prepared.append(FakePrepared(query))
        return self.prepared[-1]

    async def start(
        self, spec: QuerySpec, at: Callable[[str], None] = ignore_step, prepared: Prepared | None = None
    ) -> FakeQuery:
        """Start a query, unless the test wants otherwise."""
        self.attempts.append(spec)
        if prepared is not None:
            self.taken.append(prepared)
        if (gate := self.held.get(spec.task)) is not None:
            at(f"the gate of {spec.task}")
            await self._pass(gate, is_begun=spec.task in self.begun)
        if self.surprise is not None:
            raise self.surprise
        if spec.task in self.fenced:
            raise QueryError(f"token {spec.token} is stale", fenced=True)
        if (cause := self.broken.get(spec.task)) is not None:
            raise QueryError(cause, permanent=spec.task in self.permanent, outage=spec.task in self.away)
        query = FakeQuery(spec, stops_slowly=spec.task in self.slow)
        query.committed = self.committed
        self.started.append(query)
        return query

    async def _pass(self, gate: asyncio.Event, *, is_begun: bool) -> None:
        """Who gives the start up knows that nothing runs: at once, or when what was begun has been ended."""
        try:
            await gate.wait()
        except asyncio.CancelledError:
            if is_begun:
                await gate.wait()
            raise

    async def settle(self, spec: QuerySpec, at: Callable[[str], object] = ignore_step) -> None:
        """Remember it, unless the test wants otherwise."""
        if (gate := self.unsettled.get(spec.task)) is not None:
            at(f"the sink of {spec.task}")
            await gate.wait()
        if self.surprise is not None:
            raise self.surprise
        if (cause := self.broken.get(spec.task)) is not None:
            raise QueryError(cause, permanent=spec.task in self.permanent)
        self.settled.append(spec)

    async def check(self, spec: CheckSpec, at: Callable[[str], object] = ignore_step) -> CheckResult:
        """What the test has it find, when `check_gate` lets it."""
        self.checks.append(spec)
        at("the gate of checks")
        try:
            await self.check_gate.wait()
        except asyncio.CancelledError:
            self.checks_given_up += 1
            raise
        if isinstance(self.check_result, QueryError):
            raise self.check_result
        return self.check_result

    async def quarantine(
        self, spec: QuerySpec, request: QuarantineRequest, at: Callable[[str], object] = ignore_step
    ) -> QuarantineAnswer:
        """What the test has it answer, when `quarantine_gate` lets it."""
        self.quarantine_requests.append((spec, request))
        at("the gate of quarantines")
        try:
            await self.quarantine_gate.wait()
        except asyncio.CancelledError:
            self.quarantine_given_up += 1
            raise
        if isinstance(self.quarantine_answer, Exception):
            raise self.quarantine_answer
        return self.quarantine_answer

    async def noted(self, group: str) -> Sequence[NotedQuery]:
        """What the test has left behind, unless it wants otherwise."""
        del group
        self.sweeps += 1
        await self._answer("the records")
        if self.unreadable is not None:
            raise QueryError(self.unreadable)
        return tuple(self.left)

    async def end_noted(self, query: NotedQuery) -> NotedQuery | None:
        """Remember it, unless the test wants otherwise."""
        await self._answer(query.task)
        if (cause := self.broken.get(query.task)) is not None:
            raise QueryError(cause)
        newer = self.newer.get(query)
        if newer is None:
            self.swept.append(query)
        return newer

    async def _answer(self, what: str) -> None:
        if (gate := self.unanswered.get(what)) is not None:
            await gate.wait()

    async def died(self) -> EngineDeath:
        """Wait for `die`."""
        if self._death is None:
            raise AssertionError("not open")
        return await asyncio.shield(self._death)

    @property
    def measures(self) -> bool:
        """Whether a test has said how far a task is behind."""
        return bool(self.lags)

    @property
    def kafka_requests(self) -> dict[tuple[str, bool], int]:
        """A question for each lag that was measured."""
        return {("lag", True): len(self.measured)} if self.measured else {}

    async def resources(self, group: str | None) -> WorkerResources | None:
        """What the test has set, of whichever group."""
        del group
        return self.takes

    async def lag(self, spec: QuerySpec) -> TaskLag | None:
        """What the test has said."""
        if self.cannot_measure is not None:
            raise QueryError(self.cannot_measure)
        self.measured.append(spec.task)
        return self.lags.get(spec.task)

    @property
    def spark(self) -> SparkKind | None:
        """None, unless a test has set `kind`."""
        return self.kind

    @property
    def url(self) -> str | None:
        """Nowhere to look."""
        return None

    def kill(self) -> bool:
        """What writes is over at once, which a test looks at."""
        self.kills += 1
        return self.is_own

    async def close(self) -> None:
        """Take every query down."""
        self.is_open = False
        for query in self.started:
            query.end("the engine was closed")

    # What a test does to it, and asks it.

    def die(self, cause: str, end: EngineEnd = EngineEnd.EXITED) -> None:
        """The engine is lost, and every query with it."""
        for query in self.started:
            query.end(cause)
        if self._death is not None and not self._death.done():
            self._death.set_result(EngineDeath(cause, end))

    def hold(self, task: str) -> asyncio.Event:
        """Let starts of `task` wait; setting the event lets them go on."""
        gate = self.held[task] = asyncio.Event()
        return gate

    def queries(self, task: str) -> list[FakeQuery]:
        """All queries there ever were of `task`, oldest first."""
        return [query for query in self.started if query.spec.task == task]

    def query(self, task: str) -> FakeQuery:
        """The latest query of `task`."""
        return self.queries(task)[-1]

    @property
    def running(self) -> set[str]:
        """The tasks that have a running query."""
        return {query.spec.task for query in self.started if query.is_running}
