"""One task's life on this worker, from its grant until it moves away, comes to its end or is lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from definition.left_out import Reasons, reasons_of
from protocol.states import Target, TaskState
from worker.query_engine import QueryError, QuerySpec
from worker.tasks.desired_state import DesiredState, Outcome
from worker.tasks.query_run import HEIR_S, QueryRun
from worker.tasks.restarts import Failures
from worker.tasks.settling import AGAIN, UNWANTED, Settling
from worker.tasks.task_status import TaskStatus
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from definition.document import Definition
    from protocol.messages.lag import TaskLag
    from protocol.messages.ownership import TaskReport
    from worker.clock import Clock
    from worker.query_engine import Prepared, QueryEngine
    from worker.settings import WorkerSettings
    from worker.tasks.grants import Grant
    from worker.watchdog import Work


@dataclass(frozen=True, slots=True)
class LifeContext:
    """What every life works with.

    `changed` is called when there is something new to report, `fenced` when a sink has refused a token.
    `watching` looks after what writes without a fence (`worker.watchdog`); `is_fresh` says whether what was
    confirmed by the answer to a request of that time may be believed.
    """

    settings: WorkerSettings
    engine: QueryEngine
    clock: Clock
    chance: Callable[[], float]
    changed: Callable[[], None]
    fenced: Callable[[], None]
    watching: Callable[[Work], AbstractContextManager[None]]
    is_fresh: Callable[[float], bool]
    left_running: Callable[[TaskLife], None]

    @property
    def settle_timeout_s(self) -> float:
        """Seconds that letting go may take: the manager hears of it before its patience ends."""
        return 0.8 * self.settings.rebalance_timeout_ms / 1000

    @property
    def stop_timeout_s(self) -> float:
        """Seconds that the batch in flight may take when a query is stopped in order."""
        return min(self.settings.stop_timeout_ms / 1000, self.settle_timeout_s)

    @property
    def heir_timeout_s(self) -> float:
        """Seconds that a query which is left running waits for its next owner."""
        return HEIR_S


class TaskLife:
    """Runs what is `desired` of the task, and keeps its `status`; `run` is its whole life.

    `confirmed_at` is when the last request was sent, by the worker's clock, whose answer says that its token
    is good: the one that has granted it, at first. `prepared` is for its first query. It `is_left` once its
    token is being given back while its query runs on for the next owner.
    """

    def __init__(
        self, grant: Grant, context: LifeContext, confirmed_at: float, prepared: Prepared | None = None
    ) -> None:
        self.task = grant.task
        self.token = grant.token
        self.confirmed_at = confirmed_at
        self.acknowledged: TaskReport | None = None
        self.is_over = self.is_left = False
        self._context = context
        self.desired = DesiredState(grant, context.clock.now)
        self.status = TaskStatus(
            context.settings.group,
            grant.task,
            grant.token,
            now=context.clock.now,
            capacity=context.settings.capacity,
            changed=context.changed,
        )
        self._settling = Settling(context.engine, context.clock)
        self._prepared = prepared
        self._measured = b""
        self._failures = Failures()

    # What others say to it.

    @property
    def is_fenced(self) -> bool:
        """Whether it does no harm beside another owner."""
        return self.desired.is_fenced

    def confirm(self, sent_at: float) -> None:
        """The answer to what was sent then says that the token is good; answers may come out of order."""
        self.confirmed_at = max(self.confirmed_at, sent_at)
        self.desired.changed.notify()

    def acknowledge(self, report: TaskReport) -> None:
        """The manager has taken `report` in."""
        self.acknowledged = report
        self.desired.changed.notify()

    def report_again(self) -> None:
        """The manager may see the task otherwise by now: have it answer once more."""
        self.acknowledged = None
        self._context.changed()

    def spec(self) -> QuerySpec | None:
        """What is run of it, or would be; None while its definition cannot be read."""
        grant = self.desired.grant
        return None if grant.definition is None else self._spec(grant, grant.definition)

    def note_lag(self, grant: Grant, lag: TaskLag | None) -> None:
        """How far it is behind by the definition in `grant`, None if that reads nothing that can be asked."""
        if grant.document == self.desired.grant.document:
            self._measured = grant.document
            self.status.note_lag(lag)

    # What it does.

    async def run(self, after: asyncio.Task[Outcome] | None = None) -> Outcome:
        """Live; `after` is an earlier life of the same task here, whose query must be gone first."""
        if after is not None:
            await asyncio.wait({after})
        while self.desired.ending is None:
            await self._do_what_is_wanted()
        self._discard_prepared()
        self.is_over = True
        return self.desired.ending

    async def _do_what_is_wanted(self) -> None:
        grant = self.desired.grant
        if self.desired.act():
            self._failures = Failures()
        self.status.may_leave_out(_reasons(grant))
        if grant.document != self._measured:
            self.status.note_lag(None)
        if grant.target is not Target.RUNNING:
            self._discard_prepared()
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
        if definition.is_fenced:
            await self._on_end(await self._run_query(grant, definition), definition)
            return
        await self.desired.changed.until(
            lambda: self.desired.is_outdated() or self._context.is_fresh(self.confirmed_at)
        )
        if not self.desired.is_outdated():
            with self._context.watching(self):
                error = await self._run_query(grant, definition)
            await self._on_end(error, definition)

    async def _run_query(self, grant: Grant, definition: Definition) -> QueryError | None:
        """From its start until nothing of it runs; returns what `QueryRun.watch` does.

        In an outage each try is likely to fail: its cause stands until one does not.
        """
        if not self._failures.is_outage:
            self.status.tell(TaskState.STARTING)
        run = QueryRun(
            self._spec(grant, definition),
            self._context.engine,
            self._context.clock,
            desired=self.desired,
            status=self.status,
            stop_timeout_s=self._context.stop_timeout_s,
            left=lambda: self._context.left_running(self),
        )
        prepared, self._prepared = self._prepared, None
        query = await run.start(prepared)
        if isinstance(query, QueryError):
            return query
        self._settling.done(definition)
        self.status.begin(query)
        error = await run.watch(query)
        self.status.end()
        return error

    def _discard_prepared(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            prepared.discard()

    def _spec(self, grant: Grant, definition: Definition) -> QuerySpec:
        group = self._context.settings.group
        return QuerySpec(group, self.task, self.token, definition, grant.reset, grant.reached, grant.home)

    async def _on_end(self, error: QueryError | None, definition: Definition) -> None:
        """Without an error a bounded query has come to its end: whether it is one, it knows best itself."""
        if error is None:
            await self._finish(TaskState.COMPLETED, Outcome.COMPLETED)
        elif error is not UNWANTED:
            await self._on_failure(error, definition)

    async def _on_failure(self, error: QueryError, definition: Definition) -> None:
        """Start it again after a while, unless that would come to the same.

        Whoever owns a fenced task now has made this token stale, and the report of it will be refused. If it
        is accepted all the same, the sink has seen a higher token than the manager: a person must look.
        """
        if error.fenced:
            self._context.fenced()
        if self.desired.is_leaving:
            return
        if error.quarantine:
            await self._ask_for_quarantine(error.cause)
            return
        delay_s = None if error.fenced or error.permanent else self._restart_delay_s(error, definition)
        if delay_s is None:
            await self._rest(TaskState.FAILED, error.cause)
            return
        self.status.count_failure(outage=error.outage)
        self.status.tell(TaskState.RESTARTING, error.cause)
        await first(self._context.clock.sleep(delay_s), self.desired.until_outdated())

    def _restart_delay_s(self, error: QueryError, definition: Definition) -> float | None:
        """By the restart policy of now, which may have changed while the query ran on."""
        policy = (self.desired.grant.definition or definition).restart
        self._failures = self._failures.and_one(
            self._context.clock.now(), policy, outage=error.outage, again=error.again
        )
        return self._failures.restart_delay_s(policy, self._context.chance())

    async def _stop_settled(self, grant: Grant) -> None:
        """Say STOPPED, and why the sink could not be told of it, before its token is fenced.

        The manager's patience has begun when the stop was asked for, whatever has taken time here since then.
        """
        left_s = self.desired.since + self._context.settle_timeout_s - self._context.clock.now()
        trouble = await self._settle(grant, max(left_s, 0.0))
        if trouble is not UNWANTED and not self.desired.is_outdated():
            await self._finish(TaskState.STOPPED, Outcome.STOPPED, None if trouble is None else trouble.cause)

    async def _pause(self, grant: Grant) -> None:
        """Do nothing; the sink is told, and told again where that failed and another try may help."""
        self.status.tell(TaskState.PAUSED)
        tries = 0
        while (trouble := await self._settle(grant)) is not None:
            if trouble is UNWANTED:
                return
            self.status.tell(TaskState.PAUSED, trouble.cause)
            if trouble.permanent or trouble.fenced:
                break
            delay_s = AGAIN.delay_s(tries, self._context.chance())
            await first(self._context.clock.sleep(delay_s), self.desired.until_outdated())
            tries += 1
        if trouble is None and self.status.cause is not None:
            self.status.tell(TaskState.PAUSED)
        await self.desired.until_outdated()

    async def _settle(self, grant: Grant, within_s: float | None = None) -> QueryError | None:
        """Keep whoever had the task before from writing, unless a query of this life has done so already.

        Returns:
            Why that could not be done, `UNWANTED` if something else is wanted.
        """
        if self.desired.is_outdated():
            return UNWANTED
        if grant.definition is None:
            return QueryError(grant.fault, permanent=True)
        if self._settling.is_done(grant.definition):
            return None
        spec = self._spec(grant, grant.definition)
        return await self._settling.attempt(spec, self.desired.until_outdated(), within_s)

    async def _ask_for_quarantine(self, cause: str) -> None:
        """Do nothing until something else is wanted; the manager takes the task away once it has heard.

        It goes by no word that is older than the last change of the task, so that word is given again where a
        change means nothing to the query, as another weight does.
        """
        while not self.desired.is_outdated():
            self.status.ask_for_quarantine(cause, self.desired.grant.revision)
            await self.desired.until_later()

    async def _rest(self, state: TaskState, cause: str | None = None) -> None:
        """Do nothing until something else is wanted."""
        self.status.tell(state, cause)
        await self.desired.until_outdated()

    async def _finish(self, state: TaskState, outcome: Outcome, cause: str | None = None) -> None:
        """The last word: the life ends when the manager has heard it, unless something else is wanted now.

        The manager goes by no word that is older than the last change of the task; see `_ask_for_quarantine`.
        """
        while not self.desired.is_outdated():
            self.status.tell_last(state, cause, self.desired.grant.revision)
            await first(self.desired.until_later(), self._until_known(state))
            if self._is_known(state) and not self.desired.is_outdated():
                self.desired.ending = outcome
                return

    async def _until_known(self, state: TaskState) -> None:
        await self.desired.changed.until(lambda: self._is_known(state))

    def _is_known(self, state: TaskState) -> bool:
        return self.acknowledged is not None and self.acknowledged.state is state


def _reasons(grant: Grant) -> Reasons:
    return Reasons() if grant.definition is None else reasons_of(grant.definition)
