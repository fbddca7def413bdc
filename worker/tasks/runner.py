"""Carries out what the membership says about tasks, and touches nothing else (architecture §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from protocol.errors import ErrorCode
from worker.membership.events import Identity, Refused
from worker.membership.reactions import Reaction, RequestKind, reaction_to
from worker.session_lease import lease_s
from worker.tasks.exchange.claims import Claims
from worker.tasks.exchange.lag import LagReports
from worker.tasks.exchange.late_grants import LateGrants
from worker.tasks.exchange.manager_link import ManagerLink, TaskCoordinator, is_loss
from worker.tasks.exchange.releases import Releases
from worker.tasks.exchange.reports import Reports
from worker.tasks.first_starts import FirstStarts
from worker.tasks.holdings import Holdings
from worker.tasks.life import LifeContext, TaskLife
from worker.tasks.orphans import OrphanSweep
from worker.tasks.ownership import Ownership
from worker.tasks.preparations import Preparations
from worker.tasks.token_leases import TokenLeases
from worker.waiting import first
from worker.watchdog import unwatched

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from protocol.errors import Failure
    from protocol.messages.lag import TaskLag
    from protocol.messages.ownership import ClaimResponse, TaskReport
    from worker.clock import Clock
    from worker.query_engine import QueryEngine
    from worker.settings import WorkerSettings
    from worker.tasks.desired_state import Outcome
    from worker.tasks.grants import Grant
    from worker.tasks.task_status import TaskSnapshot
    from worker.watchdog import Work

log = structlog.get_logger(__name__)

LOOK_S: Final = 0.1
"""From one look at whether tasks are started to the next: a query does not say when it has done a batch."""


class TaskRunner:
    """Runs the tasks a worker owns.

    Args:
        settings: the worker's.
        manager: who grants tasks.
        engine: what runs queries.
        clock: for reports and restarts.
        chance: random numbers in [0, 1), for jitter.
        spawn: runs a coroutine in the background; what it raises ends the worker.
        trouble: is told what concerns the membership.
        fenced: is called when a sink refuses a token.
        is_alone: says whether there is no manager any more that anything could be released to.
        token_lease_s: for how many seconds a token may be believed in unconfirmed; a worker's lease if None.
        watching: looks after what writes without a fence (`worker.watchdog`).
    """

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        manager: TaskCoordinator,
        engine: QueryEngine,
        clock: Clock,
        chance: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
        trouble: Callable[[Refused], None],
        fenced: Callable[[], None] = lambda: None,
        is_alone: Callable[[], bool] = lambda: False,
        token_lease_s: float | None = None,
        watching: Callable[[Work], AbstractContextManager[None]] = unwatched,
    ) -> None:
        self._clock = clock
        self._trouble = trouble
        self._is_alone = is_alone
        self._spawn = spawn
        self._identity = Identity()
        self._revision = 0
        self._ownership = Ownership()
        self.holdings = Holdings(self._ownership)
        self._starts = FirstStarts(self._is_started, clock.now)
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._left_running: set[TaskLife] = set()
        self._changed = self._ownership.changed
        link = ManagerLink(
            manager, clock, chance, settings.instance_id, lambda: self._identity, self._on_refused
        )
        self._claims = Claims(
            link,
            wait_ms=settings.wait_ms,
            prepare=lambda: engine.prepares,
            revision=lambda: self._revision,
            taken=self._on_claimed,
            doubted=self._claim,
            spawn=spawn,
        )
        self._preparations = Preparations(engine, settings.group, spawn)
        self._releases = Releases(link, released=self._on_released, failed=self._changed.notify)
        self._reports = Reports(
            link,
            lives=lambda: (life for life in self._ownership if not life.is_over),
            refresh_s=settings.session_timeout_ms / 3000,
            taken=self._on_reported,
            spawn=spawn,
        )
        own_s = lease_s(settings.session_timeout_ms) if token_lease_s is None else token_lease_s
        self._token_leases = TokenLeases(own_s, clock, lambda: self._ownership, self._on_lapsed)
        self._context = LifeContext(
            settings,
            engine,
            clock,
            chance,
            changed=self._reports.changed,
            fenced=fenced,
            watching=watching,
            is_fresh=self._token_leases.is_fresh,
            left_running=self._leave_running,
        )
        self._sweep = OrphanSweep(link, engine, settings.group, settings.rebalance_timeout_ms / 1000)
        self._lag = LagReports(
            link,
            engine,
            settings.group,
            lambda: self._ownership,
            every_s=settings.lag_interval_ms / 1000,
        )
        self._late = LateGrants(link, own_s, self._claim_late, spawn)
        for work in (self._token_leases.watch, self._sweep.run, self._releases.run, self._reports.run):
            spawn(work())
        spawn(self._lag.run())

    def views(self) -> tuple[TaskSnapshot, ...]:
        """How every owned task is doing."""
        return tuple(life.status.view() for life in self._ownership)

    def ownerless(self) -> dict[str, TaskLag]:
        """How far tasks that nobody owns are behind, as far as this worker has measured it."""
        return self._lag.ownerless

    # What the membership says.

    def owned(self) -> dict[str, int]:
        """The owned tasks, each with its token; what is being stopped is owned until it is released."""
        return {life.task: life.token for life in self._ownership}

    def claiming(self) -> tuple[str, ...]:
        """The tasks that may be granted any moment."""
        return self._claims.under_way()

    def starting(self) -> tuple[str, ...]:
        """The assigned tasks that are still to be started here, and are waited for."""
        return tuple(sorted(self._starts.under_way() & self._ownership.assigned))

    def adopt(self, identity: Identity, tasks: frozenset[str]) -> None:
        """A new assignment: let go of what moved away, claim what is assigned, touch nothing else."""
        self._identity = identity
        self._sweep.wake()
        self._ownership.assign(tasks)
        self._starts.assign(tasks)
        self._preparations.keep(tasks)
        self._claim()

    def refresh(self, tasks_revision: int) -> None:
        """Something about the tasks has changed up to this revision: claims tell what of those assigned.

        What is being let go is not claimed; whether it still is this worker's, the answer to a report says.
        """
        self._revision = max(self._revision, tasks_revision)
        self._catch_up()
        for life in self._ownership:
            if life.desired.is_leaving:
                life.report_again()

    def lose(self, reason: str) -> None:
        """Every task is lost: stop all queries at once, release nothing."""
        if held := self._ownership.held:
            log.warning("tasks lost, their queries are stopped", reason=reason, tasks=len(held))
        self._revision = 0  # the group itself may be a new one
        self._claims.abandon()
        self._releases.forget()
        self._preparations.keep(frozenset())
        for life in self._left_running:
            life.desired.cut()
        self._ownership.lose()
        self._starts.assign(frozenset())

    async def until_started(self) -> None:
        """Wait until every task of the assignment was started here, or was waited for long enough."""
        while self.starting():
            await self._clock.sleep(LOOK_S)

    def _is_started(self, task: str) -> bool:
        life = self._ownership.get(task)
        return life is not None and life.status.is_started

    async def let_go(self, within_s: float, *, for_good: bool = False) -> bool:
        """Stop everything in order and release it; what takes longer than `within_s` seconds is cut.

        What was left running before has the wait for its next owner besides.

        Before the worker ends, `for_good`, that is enough when every query has stopped and all managers are
        gone: whichever comes back finds out by the session.

        Returns:
            Whether no query runs any more.
        """
        self._claims.stop()
        self._reports.everything()
        self._ownership.let_go()
        self._starts.assign(frozenset())
        self._preparations.keep(frozenset())

        def is_done() -> bool:
            is_free = self._owns_nothing() and not self._left_running
            return is_free or (for_good and not self._running and self._is_alone())

        limit_s = within_s + (self._context.heir_timeout_s if self._left_running else 0.0)
        if not await first(self._changed.until(is_done), self._clock.sleep(limit_s)):
            self.lose("stopping in order took too long")
        return not self._running

    def _owns_nothing(self) -> bool:
        return not self._ownership.held

    async def own_nothing(self) -> None:
        """Wait until no task is owned."""
        await self._changed.until(self._owns_nothing)

    async def come_to_rest(self, within_s: float) -> None:
        """Wait until nothing runs any more, owned or not, `within_s` seconds at most."""
        await first(self._changed.until(lambda: not self._running), self._clock.sleep(within_s))

    # What the manager answers.

    def _claim(self) -> None:
        self._claims.claim(self._ownership.to_claim(), self._ownership.held)

    def _on_claimed(self, answer: ClaimResponse, sent_at: float) -> None:
        for granted in answer.granted:
            grant = self._ownership.granted(granted, sent_at, answer.tasks_revision)
            if grant is not None:
                self._on_granted(grant, sent_at)
        self._late.answered(sent_at)
        for pending in answer.pending:
            self._ownership.pending(pending.task)
        for refused in answer.refused:
            self._ownership.not_ours(refused.task, is_gone=refused.error == ErrorCode.UNKNOWN_TASK)
        self._preparations.offered(each for each in answer.pending if each.task in self._ownership.assigned)
        self._catch_up()

    def _catch_up(self) -> None:
        """Claim again what is assigned, unless a claim has told as much already, or soon will."""
        if not self._claims.is_fresh(self._revision):
            self._claim()

    def _on_granted(self, grant: Grant, sent_at: float) -> None:
        """Start a life, unless the answer took so long that the task may be somebody else's by now.

        One that is not wanted ends at once, but no sooner than the life before it, for its release says that
        nothing of the task runs here.
        """
        if grant.task not in self._ownership.assigned:
            self._begin(grant, sent_at).desired.leave()
            return
        is_fresh = self._token_leases.is_fresh(sent_at)
        if is_fresh:
            self._late.none()
        if is_fresh or grant.is_fenced:
            self._begin(grant, sent_at)
        else:
            self._late.add(grant)

    def _claim_late(self, tasks: frozenset[str]) -> None:
        if (tasks & self._ownership.assigned) - self._ownership.held:
            self._claim()

    def _on_lapsed(self, life: TaskLife) -> None:
        """The manager may have given a task without a fence to somebody else, and could not say so."""
        log.warning(
            "token was not confirmed for too long, the query is stopped", task=life.task, token=life.token
        )
        self._lose_one(life)

    def _on_reported(self, report: TaskReport, sent_at: float, code: ErrorCode) -> None:
        life = self._ownership.get(report.task)
        if life is None or life.token != report.token:
            return
        if code is ErrorCode.NONE:
            life.confirm(sent_at)
            life.acknowledge(report)
            return
        match reaction_to(code, RequestKind.REPORT):
            case Reaction.STOP_QUERY:
                if not life.desired.is_leaving:
                    log.warning("token is stale, the query is stopped", task=life.task, token=life.token)
                self._lose_one(life)
            case Reaction.LET_GO:
                self._ownership.not_ours(report.task, is_gone=True)

    def _lose_one(self, life: TaskLife) -> None:
        """It belongs to somebody else; should it be ours by right, a claim will tell."""
        self._ownership.overtaken(life)
        self._claim_again(life.task)

    def _on_refused(self, asked: RequestKind, identity: Identity, failure: Failure) -> None:
        if asked is RequestKind.CLAIM or is_loss(failure, asked):
            self._trouble(Refused(asked, identity, failure))
        else:
            log.error(
                "the manager refused a request", asked=asked.value, code=failure.code, why=failure.message
            )

    def _on_released(self, task: str, token: int, code: str) -> None:
        self._ownership.released(task, token)
        if code == ErrorCode.UNKNOWN_TASK:
            self._wait_for_no_heir(task)
        self._claim_again(task)

    def _claim_again(self, task: str) -> None:
        """A token of it is gone: the next one is ours if it is assigned, and may be if an answer was lost."""
        if task in self._ownership.assigned or self._claims.is_in_doubt(task):
            self._claim()

    # What the tasks do.

    def _begin(self, grant: Grant, sent_at: float) -> TaskLife:
        """A new life, which waits for the end of the one before it of the same task."""
        self._wait_for_no_heir(grant.task)
        life = TaskLife(grant, self._context, sent_at, self._preparations.take(grant))
        running = self._spawn(life.run(self._running.get(grant.task)))
        self._running[grant.task] = running
        running.add_done_callback(lambda done: self._on_done(life, done))
        self._ownership.begun(life)
        return life

    def _leave_running(self, life: TaskLife) -> None:
        """Its task is the next owner's from now on, who takes its query over; see `QueryRun`."""
        life.is_left = True
        self._left_running.add(life)
        self._releases.add(life.task, life.token, is_running=True)

    def _wait_for_no_heir(self, task: str) -> None:
        """The task is gone or has come back here: nobody else takes over what was left running of it."""
        for life in self._left_running:
            if life.task == task:
                life.desired.leave(for_next_owner=False)

    def _on_done(self, life: TaskLife, done: asyncio.Task[Outcome]) -> None:
        self._left_running.discard(life)
        if self._running.get(life.task) is done:
            del self._running[life.task]
        self._changed.notify()
        if done.cancelled() or done.exception() is not None or self._ownership.get(life.task) is not life:
            return
        if self._ownership.ended(life, done.result()):
            self._releases.add(life.task, life.token)
