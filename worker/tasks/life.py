"""One task's life on this worker, from its grant until it moves away, comes to its end or is lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import structlog

from protocol.messages.ownership import MAX_CAUSE_LENGTH, TaskReport
from protocol.states import Target, TaskState
from telemetry.causes import new_cause_id
from telemetry.secrets import scrub
from worker.executor import Ended, Progress, QuerySpec
from worker.tasks.load import Load
from worker.tasks.plan import is_outdated
from worker.tasks.restarts import Failures
from worker.tasks.settling import AGAIN, GIVEN_UP, Settling, failed
from worker.tasks.task_status import Record, TaskView
from worker.waiting import News, first

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from definition.document import Definition
    from worker.clock import Clock
    from worker.executor import Executor, Query
    from worker.tasks.grants import Grant
    from worker.watchdog import Work

log = structlog.get_logger(__name__)

SLOW_START_S = 10.0
"""After so long a start's state says what it is waiting for."""


class Outcome(Enum):
    """How a life ended."""

    LEFT = auto()
    """Stopped in order because the task moves away: its token is to be released."""
    STOPPED = auto()
    """Its target is STOPPED, and the manager knows that it is."""
    COMPLETED = auto()
    """A bounded query came to its end, and the manager knows."""
    CUT = auto()
    """The token is lost: nothing of it runs any more, and nothing is to be said about it."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What every life works with.

    `changed` is called when there is something new to report, `fenced` when a sink has refused a token.
    `watching` looks after what writes without a fence (`worker.watchdog`); `is_fresh` says whether what was
    confirmed by the answer to a request of that time may be believed.
    """

    group: str
    executor: Executor
    clock: Clock
    chance: Callable[[], float]
    stop_timeout_s: float
    settle_timeout_s: float
    changed: Callable[[], None]
    fenced: Callable[[], None]
    watching: Callable[[Work], AbstractContextManager[None]]
    is_fresh: Callable[[float], bool]
    capacity: float = 1.0


class TaskLife:
    """Runs what its latest grant asks for; `run` is its whole life, everything else steers it.

    `confirmed_at` is when the last request was sent, by the worker's clock, whose answer says that its token
    is good: the one that has granted it, at first.
    """

    def __init__(self, grant: Grant, tools: Tools, confirmed_at: float) -> None:
        self.task = grant.task
        self.confirmed_at = confirmed_at
        self.wanted = grant
        self.acknowledged: TaskReport | None = None
        self._tools = tools
        self._acted_on: Grant | None = None
        self._failures = Failures()
        self._ending: Outcome | None = None
        self.is_over = False
        self._settling = Settling(tools.executor, tools.clock)
        self._wanted_at = tools.clock.now()
        self._news = News()
        self._query: Query | None = None
        self._progress = Progress(None)
        self._checkpoint: str | None = None
        self._load: Load | None = None
        self._record = Record(tools.clock.now)
        self._state = TaskState.STARTING
        self._cause: str | None = None
        self._step = "its turn"
        self._log = log.bind(group=tools.group, task=grant.task)

    # What others say to it.

    @property
    def token(self) -> int:
        """The token the task is owned under."""
        return self.wanted.token

    @property
    def is_leaving(self) -> bool:
        """Whether it is on its way out."""
        return self._ending is not None

    @property
    def is_fenced(self) -> bool:
        """Whether it does no harm beside another owner: neither what runs by now, nor what is to run next."""
        return self.wanted.is_fenced and (self._acted_on is None or self._acted_on.is_fenced)

    def confirm(self, sent_at: float) -> None:
        """The answer to what was sent then says that the token is good; answers may come out of order."""
        self.confirmed_at = max(self.confirmed_at, sent_at)
        self._news.tell()

    def follow(self, grant: Grant) -> None:
        """Do what `grant` asks for, if that is anything new and no answer to an overtaken claim."""
        if grant.token == self.token and not grant.is_older(self.wanted):
            if grant.target is not self.wanted.target:
                self._wanted_at = self._tools.clock.now()
            self.wanted = grant
            self._news.tell()

    def leave(self) -> None:
        """End in order: the batch in flight may finish."""
        self._ending = self._ending or Outcome.LEFT
        self._news.tell()

    def cut(self) -> None:
        """End at once."""
        self._ending = Outcome.CUT
        self._news.tell()

    def acknowledge(self, report: TaskReport) -> None:
        """The manager has taken `report` in."""
        self.acknowledged = report
        self._news.tell()

    def report_again(self) -> None:
        """The manager may see the task otherwise by now: have it answer once more."""
        self.acknowledged = None
        self._tools.changed()

    def report(self) -> TaskReport:
        """How the task is doing now."""
        self._look()
        return TaskReport(
            task=self.task,
            token=self.token,
            state=self._state,
            batch_id=self._progress.batch_id,
            metrics=self._metrics() or None,
            cause=self._cause,
            checkpoint=None if self._progress.batch_id is None else self._checkpoint,
        )

    def view(self) -> TaskView:
        """How the task is doing now, for those who watch the worker."""
        self._look()
        return TaskView(
            task=self.task,
            token=self.token,
            state=self._state,
            cause=self._cause,
            batch_id=self._progress.batch_id,
            metrics=self._progress.metrics,
            totals=self._record.totals,
            restarts=self._record.restarts,
            idle_s=self._record.idle_s,
            has_work=self._query is not None and self._query.has_work,
        )

    def _look(self) -> None:
        if self._query is not None and (progress := self._query.progress()) is not None:
            self._progress = progress
            self._record.look(progress)

    def _metrics(self) -> dict[str, Any]:
        """What the engine tells of the last batch, and how much work the task has turned out to be."""
        metrics = self._progress.metrics
        if self._load is None or "batch_ms" not in metrics:
            return metrics
        self._load.observe(self._progress.batch_id, metrics["batch_ms"], self._tools.clock.now())
        load = self._load.measured()
        return metrics if load is None else {**metrics, "load": load}

    # What it does.

    async def run(self, after: asyncio.Task[Outcome] | None = None) -> Outcome:
        """Live; `after` is an earlier life of the same task here, whose query must be gone first."""
        if after is not None:
            await asyncio.wait({after})
        while self._ending is None:
            await self._do_what_is_wanted()
        self.is_over = True
        return self._ending

    async def _do_what_is_wanted(self) -> None:
        grant, before = self.wanted, self._acted_on
        if before is not None and is_outdated(before, grant):
            self._failures = Failures()
        self._acted_on = grant
        if grant.target is Target.STOPPED:
            await self._stop_settled(grant)
        elif grant.target is Target.PAUSED:
            await self._pause(grant)
        elif grant.definition is None:
            await self._rest(TaskState.FAILED, grant.fault)
        else:
            await self._run_in_time(grant, grant.definition)

    async def _run_in_time(self, grant: Grant, definition: Definition) -> None:
        """Without a fence, only under a good token, and so that the query is over before another owner's."""
        ended: Ended | None = None
        if definition.is_fenced:
            ended = await self._run_query(grant, definition)
        else:
            await self._news.until(lambda: self._is_outdated() or self._tools.is_fresh(self.confirmed_at))
            if not self._is_outdated():
                with self._tools.watching(self):
                    ended = await self._run_query(grant, definition)
        if ended is not None:
            await self._on_end(ended, definition)

    async def _stop_settled(self, grant: Grant) -> None:
        """Say STOPPED, and why the sink could not be told of it, before its token is fenced.

        The manager's patience has begun when the stop was asked for, whatever has taken time here since then.
        """
        left_s = self._wanted_at + self._tools.settle_timeout_s - self._tools.clock.now()
        trouble = await self._settle(grant, max(left_s, 0.0))
        if trouble is not GIVEN_UP and not self._is_outdated():
            cause = trouble.cause if trouble is not None else None
            await self._finish(TaskState.STOPPED, Outcome.STOPPED, cause)

    async def _pause(self, grant: Grant) -> None:
        """Do nothing; the sink is told, and told again where that failed and another try may help."""
        self._tell(TaskState.PAUSED)
        tries = 0
        while (trouble := await self._settle(grant)) is not None:
            if trouble is GIVEN_UP:
                return
            self._tell(TaskState.PAUSED, trouble.cause)
            if trouble.permanent or trouble.fenced:
                break
            delay_s = AGAIN.delay_s(tries, self._tools.chance())
            await first(self._tools.clock.sleep(delay_s), self._news.until(self._is_outdated))
            tries += 1
        if trouble is None and self._cause is not None:
            self._tell(TaskState.PAUSED)
        await self._news.until(self._is_outdated)

    async def _settle(self, grant: Grant, within_s: float | None = None) -> Ended | None:
        """Keep whoever had the task before from writing, unless a query of this life has done so already.

        Returns:
            Why that could not be done, `GIVEN_UP` if something else is wanted.
        """
        if self._is_outdated():
            return GIVEN_UP
        if grant.definition is None:
            return Ended(grant.fault, permanent=True)
        if self._settling.is_done(grant.definition):
            return None
        spec = self._spec(grant, grant.definition)
        return await self._settling.attempt(spec, self._news.until(self._is_outdated), within_s)

    def _spec(self, grant: Grant, definition: Definition) -> QuerySpec:
        return QuerySpec(self._tools.group, self.task, self.token, definition, grant.reset, grant.reached)

    async def _run_query(self, grant: Grant, definition: Definition) -> Ended | None:
        """From its start until nothing of it runs; how it ended, None if something else is wanted."""
        self._tell(TaskState.STARTING)
        query = await self._start(self._spec(grant, definition))
        if query is None or isinstance(query, Ended):
            return query
        self._query, self._checkpoint = query, query.checkpoint
        self._settling.done(definition)
        self._record.begin()
        self._load = Load(self._tools.capacity, self._tools.clock.now())
        self._tell(TaskState.RUNNING)
        ended = await self._watch(query)
        self._look()
        self._record.end()
        self._query = self._load = None
        return ended

    async def _start(self, spec: QuerySpec) -> Query | Ended | None:
        """None if something else is wanted before it is done."""
        self._step = "its turn"
        starting = asyncio.ensure_future(self._tools.executor.start(spec, self._come_to))
        telling = asyncio.ensure_future(self._tell_of_waiting())
        try:
            if not await first(asyncio.wait({starting}), self._news.until(self._is_outdated)):
                await self._give_up(starting)
                return None
            return starting.result()
        except Exception as error:  # noqa: BLE001 - a plug-in's or Spark's surprise harms this task only
            return failed(error, spec, "at its start")
        finally:
            starting.cancel()
            telling.cancel()

    async def _give_up(self, starting: asyncio.Future[Query]) -> None:
        """A start that nobody wants any more: cut or not, its query may begin until it is called back."""
        starting.cancel()
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await self._stop(starting.result())

    def _come_to(self, step: str) -> None:
        """The start under way may have to wait for `step`."""
        self._step = step
        if self._cause is not None and self._state is TaskState.STARTING:
            self._tell(TaskState.STARTING, f"waits for {step}")

    async def _tell_of_waiting(self) -> None:
        """Most starts take a second: what one waits for is told when it is another that does."""
        await self._tools.clock.sleep(SLOW_START_S)
        self._tell(TaskState.STARTING, f"waits for {self._step}")

    async def _watch(self, query: Query) -> Ended | None:
        """Until the query ends by itself, or has been stopped because something else is wanted (None)."""
        if await first(query.ended(), self._news.until(self._is_outdated)):
            return await query.ended()
        await self._stop(query)
        return None

    async def _stop(self, query: Query) -> None:
        """Stop in order; a cut that comes meanwhile makes short work of it."""
        try:
            if self._is_cut():
                await query.stop(0.0)
                return
            stopping = asyncio.ensure_future(query.stop(self._tools.stop_timeout_s))
            if not await first(asyncio.shield(stopping), self._news.until(self._is_cut)):
                await asyncio.gather(stopping, query.stop(0.0))
        except Exception:  # noqa: BLE001 - likewise; what may be left of it is fenced, or waited for
            self._log.exception("unexpected trouble at the stop of a query", cause_id=new_cause_id())
            if not query.spec.definition.is_fenced:
                await query.ended()

    async def _on_end(self, ended: Ended, definition: Definition) -> None:
        """An end without a cause is a bounded query's: whether it is one, the query itself knows best."""
        if ended.cause is None and not ended.fenced:
            await self._finish(TaskState.COMPLETED, Outcome.COMPLETED)
        else:
            await self._on_failure(ended, definition)

    async def _on_failure(self, ended: Ended, definition: Definition) -> None:
        if ended.fenced:
            self._tools.fenced()
        if self.is_leaving:
            return
        cause = ended.cause or "a sink refused the token"
        if ended.fenced:
            # Whoever owns the task now has made this token stale, and the report of it will be refused. If it
            # is accepted all the same, the sink has seen a higher token than the manager: a person must look.
            await self._rest(TaskState.FAILED, cause)
            return
        if ended.permanent:
            await self._rest(TaskState.FAILED, cause)
            return
        policy = (self.wanted.definition or definition).restart  # it may have changed while the query ran on
        self._failures = self._failures.and_one(self._tools.clock.now(), policy)
        delay_s = self._failures.restart_delay_s(policy, self._tools.chance())
        if delay_s is None:
            await self._rest(TaskState.FAILED, cause)
        else:
            self._record.restarts += 1
            self._tell(TaskState.RESTARTING, cause)
            await first(self._tools.clock.sleep(delay_s), self._news.until(self._is_outdated))

    async def _rest(self, state: TaskState, cause: str | None = None) -> None:
        """Do nothing until something else is wanted."""
        self._tell(state, cause)
        await self._news.until(self._is_outdated)

    async def _finish(self, state: TaskState, outcome: Outcome, cause: str | None = None) -> None:
        """The last word: the life ends when the manager has heard it, unless something else is wanted now."""
        self._tell(state, cause)
        await self._news.until(lambda: self._is_outdated() or self._is_known(state))
        if not self._is_outdated():
            self._ending = outcome

    def _tell(self, state: TaskState, cause: str | None = None) -> None:
        self._state = state
        self._cause = scrub(cause, MAX_CAUSE_LENGTH) if cause else None
        brief = {"cause": self._cause.partition("\n")[0]} if self._cause else {}
        self._log.info("task changed state", state=state.value, token=self.token, **brief)
        self._tools.changed()

    # When to go on.

    def _is_outdated(self) -> bool:
        return self.is_leaving or (self._acted_on is not None and is_outdated(self._acted_on, self.wanted))

    def _is_cut(self) -> bool:
        return self._ending is Outcome.CUT

    def _is_known(self, state: TaskState) -> bool:
        return self.acknowledged is not None and self.acknowledged.state is state
