"""The worker daemon (`sparkherd worker`): a member of a group that runs what it is assigned."""

from __future__ import annotations

import os
import random
import sys
from functools import partial
from typing import TYPE_CHECKING

import structlog

from protocol.errands import ErrandKind
from protocol.messages.base import encode_opaque
from protocol.messages.membership import Protocol
from protocol.messages.ownership import ReportRequest
from protocol.worker_metadata import WorkerMetadata
from telemetry.scope import open_scope
from worker.background import BackgroundTasks
from worker.checks.job import CheckJob
from worker.client.bearer import take_token
from worker.client.discovery import Discovery
from worker.client.group_client import GroupClient, Timeouts
from worker.client.tls import client_tls
from worker.client.transport import Transport
from worker.clock import SystemClock
from worker.errands.runner import ErrandRunner
from worker.host import DRAIN_MARGIN_S, EXIT_CODES, Host, spark_engine
from worker.membership.draining import move_away
from worker.membership.events import LeaseExpired, Quit, Reason, Started, StopAsked
from worker.membership.leader import Leader, load_assignors
from worker.membership.member import Member
from worker.membership.requests import Terms
from worker.membership.state_machine import Membership
from worker.metrics.meter import WorkerView
from worker.quarantined_rows.job import QuarantineJob
from worker.session_lease import SessionLease, lease_s, over_s
from worker.tasks.runner import TaskRunner
from worker.watchdog import Watchdog, end_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from assignors.base import Assignor
    from protocol.messages.resources import WorkerResources
    from worker.membership.events import Event
    from worker.query_engine import EngineDeath, QueryEngine
    from worker.settings import WorkerSettings

    MakeEngine = Callable[[WorkerSettings, Callable[[], bool]], QueryEngine]

log = structlog.get_logger(__name__)


def say_on_stdout(line: str) -> None:
    """Print a line that whoever started the worker may wait for."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def run(
    settings: WorkerSettings,
    make_engine: MakeEngine = spark_engine,
    say: Callable[[str], None] = say_on_stdout,
    end_process: Callable[[int], object] = os._exit,
) -> int:
    """Work until told to stop; returns the exit code.

    Args:
        settings: the worker's.
        make_engine: makes the engine; given a function that tells, from any thread, whether the worker may
            still write.
        say: prints a line for whoever started the worker.
        end_process: ends this process at once, with an exit code.

    Raises:
        StartupError: the worker cannot start; one line that names what to change.
    """
    open_scope(group=settings.group)
    assignors = load_assignors(settings.assignor)
    bearer = take_token(settings.token_file)
    tls = client_tls(settings.tls_ca, settings.tls_cert, settings.tls_key)
    async with BackgroundTasks() as background, Transport(bearer, tls) as transport:
        worker = Worker(
            settings,
            assignors=assignors,
            background=background,
            transport=transport,
            make_engine=make_engine,
            say=say,
            end_process=end_process,
        )
        return await worker.work()


class Worker(Host):
    """One worker's parts, tied together."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        assignors: Sequence[Assignor],
        background: BackgroundTasks,
        transport: Transport,
        make_engine: MakeEngine,
        say: Callable[[str], None],
        end_process: Callable[[int], object],
    ) -> None:
        super().__init__(settings, background)
        self._assignors = assignors
        self._say = say
        self._end_process = end_process
        clock = SystemClock()
        self._lease = SessionLease(
            lease_s(settings.session_timeout_ms), clock, lambda: self._post(LeaseExpired())
        )
        self.engine = make_engine(settings, self._lease.may_write)
        self._watchdog = Watchdog(clock.now, over_s(settings.session_timeout_ms), self._end_at_once)
        self._discovery = Discovery(transport, settings.manager, settings.group)
        self._clock = clock
        self._client = client = GroupClient(
            transport,
            self._discovery,
            group=settings.group,
            timeouts=Timeouts.of(
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=settings.rebalance_timeout_ms,
            ),
            now=clock.now,
            accepted=self._lease.renew,
            answered=self.meter.answered,
        )
        self.tasks = TaskRunner(
            settings,
            manager=client,
            engine=self.engine,
            clock=clock,
            chance=random.random,
            spawn=background.spawn,
            trouble=self._post,
            fenced=self.meter.fenced,
            is_alone=lambda: self._discovery.is_alone,
            watching=self._watchdog.watching,
        )
        self._member = Member(
            Membership(_terms(settings, assignors), self._offer, random.random),
            coordinator=client,
            tasks=self.tasks,
            leader=Leader(
                assignors,
                session_timeout_ms=settings.session_timeout_ms,
                move_at_once=settings.move_at_once,
            ),
            clock=clock,
            spawn=background.spawn,
            surrender=self._surrender,
            revoke_s=min(settings.stop_timeout_ms, settings.session_timeout_ms / 2) / 1000,
            drain_s=settings.stop_timeout_ms / 1000 + DRAIN_MARGIN_S,
            joined=lambda member_id: say(f"joined {settings.group} as {member_id}"),
            errands=ErrandRunner(
                client,
                {
                    ErrandKind.CHECK: CheckJob(self.engine, settings.group),
                    ErrandKind.QUARANTINE: QuarantineJob(self.engine, self.tasks.holdings),
                },
                instance_id=settings.instance_id,
                clock=clock,
                chance=random.random,
                spawn=background.spawn,
            ),
        )

    def view(self) -> WorkerView:
        """What it is doing, for those who watch it."""
        return WorkerView(
            group=self._settings.group,
            member_id=self._member.member_id,
            generation=self._member.generation,
            state=self._member.state,
            lease_s=self._lease.remaining_s,
            tasks=self.tasks.views(),
            ownerless=self.tasks.ownerless(),
            kafka_requests=self.engine.kafka_requests,
            resources=self.resources,
        )

    async def work(self) -> int:
        """Join when the engine is up, run tasks, and end in order; returns the exit code.

        The engine takes seconds to come up; that no manager answers is found out, and told, meanwhile.
        """
        self._watchdog.start()
        try:
            self._background.spawn(self._lease.watch())
            self._looking = self._background.spawn(self._discovery.coordinator())
            farewell = await self.run(self._member.quit, lambda url: self._say(f"status on {url}"))
            return EXIT_CODES[farewell.reason]
        finally:
            self._watchdog.close()

    async def engine_is_up(self) -> None:
        """Join."""
        await self._looking
        self._post(Started())

    def engine_died(self, death: EngineDeath) -> None:
        """Leave at once."""
        why = f"the engine died: {death.how}"
        farewell = Quit(Reason.ENGINE_DIED, why, death.end, out_of_memory=death.out_of_memory)
        self._post(StopAsked(farewell, in_order=False))

    async def tell_resources(self, seen: WorkerResources) -> None:
        """The manager, while the worker is a member; what does not arrive is told anew soon."""
        if self._member.member_id:
            await self._client.report(
                ReportRequest(
                    member_id=self._member.member_id,
                    instance_id=self._settings.instance_id,
                    tasks=(),
                    resources=seen,
                )
            )

    def stop_asked(self, signal_name: str) -> None:
        """Have the tasks moved away, and leave."""
        self._background.spawn(self._depart(Quit(Reason.ASKED, f"stopped by {signal_name}")))

    async def before_rest(self, farewell: Quit) -> None:
        """Say why it ends; its membership has let go of everything."""
        tell = log.info if farewell.reason is Reason.ASKED else log.error
        tell(farewell.message, group=self._settings.group)

    def _end_at_once(self, tasks: tuple[str, ...]) -> None:
        """Called from the watchdog's thread: what may not write any more will not."""
        end = partial(self._end_process, EXIT_CODES[Reason.ENGINE_DIED])
        end_at_once(tasks, self.engine.kill, end, group=self._settings.group)

    def _surrender(self) -> None:
        self._lease.surrender()
        self.meter.lost()

    def _post(self, event: Event) -> None:
        """For the parts that are made before the member is."""
        self._member.post(event)

    async def _depart(self, farewell: Quit) -> None:
        """A member has its tasks moved away first, unless it is static: that means to come back to them."""
        in_order = True
        if self._member.member_id and self._settings.instance_id is None:
            in_order = await move_away(
                self._member.member_id,
                manager=self._client,
                managers=self._discovery,
                tasks=self.tasks,
                clock=self._clock,
                within_s=self._settings.stop_timeout_ms / 1000,
            )
        self._post(StopAsked(farewell, in_order=in_order))

    def _offer(self, tasks_revision: int) -> tuple[Protocol, ...]:
        """Every assignor this worker can use, each with the same metadata."""
        spark = self.engine.spark
        metadata = encode_opaque(
            WorkerMetadata(
                owned=self.tasks.owned(),
                claiming=self.tasks.claiming(),
                starting=self.tasks.starting(),
                capacity=self._settings.capacity,
                max_tasks=self._settings.max_tasks,
                labels=self._settings.label,
                url=self.engine.url,
                tasks_revision=tasks_revision,
                settles=True,
                homes=True,
                offer_pages=True,
                spark=None if spark is None else spark.version,
                formats=None if spark is None else spark.formats,
                checks=True,
                quarantine=True,
                paces=not _is_eager(self._assignors),
            )
        )
        return tuple(Protocol(assignor.name, metadata) for assignor in self._assignors)


def _terms(settings: WorkerSettings, assignors: Sequence[Assignor]) -> Terms:
    return Terms(
        client_id=settings.client_id,
        instance_id=settings.instance_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        wait_ms=settings.wait_ms,
        eager=_is_eager(assignors),
    )


def _is_eager(assignors: Iterable[Assignor]) -> bool:
    """One eager assignor makes the member eager: it does not know before a join which one will be chosen."""
    return any(assignor.kind == "eager" for assignor in assignors)
