"""The worker daemon: brings up the engine and the membership, ties them together, and ends in order.

Exit codes: 0 asked to stop; 1 a bug; 2 it could not start (by `StartupError`); 3 another process carries its
instance id; 4 the engine (Spark) is lost, or was killed for a query that would not end; 5 the manager refuses
it for good; 128 + N a second signal N.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from protocol.errors import StartupError
from protocol.messages.base import encode_opaque
from protocol.messages.membership import Protocol
from protocol.worker_metadata import WorkerMetadata
from telemetry.scope import open_scope
from worker.background import BackgroundTasks
from worker.client.bearer import take_token
from worker.client.discovery import Discovery
from worker.client.group_client import GroupClient
from worker.client.timeouts import Timeouts
from worker.client.tls import client_tls
from worker.client.transport import Transport
from worker.clock import SystemClock
from worker.executor import QueryError
from worker.membership.core import Membership
from worker.membership.draining import move_away
from worker.membership.effects import Quit, Reason
from worker.membership.events import LeaseExpired, Started, StopAsked
from worker.membership.leader import Leader, load_assignors
from worker.membership.member import Member
from worker.membership.requests import Terms
from worker.metrics.meter import Meter
from worker.metrics.reader import WorkerReader, WorkerView
from worker.session_lease import SessionLease, lease_s, over_s
from worker.status.handlers import StatusHandlers
from worker.status.server import serving
from worker.tasks.runner import TaskRunner
from worker.watchdog import Watchdog, end_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assignors.base import Assignor
    from worker.executor import Executor
    from worker.membership.events import Event
    from worker.settings import WorkerSettings

    MakeExecutor = Callable[[WorkerSettings, Callable[[], bool]], Executor]

log = structlog.get_logger(__name__)

EXIT_CODES: Final = {Reason.ASKED: 0, Reason.FENCED: 3, Reason.ENGINE_DIED: 4, Reason.REFUSED: 5}
DRAIN_MARGIN_S = 5.0
"""How much longer than stopping the queries, letting go of them may take."""
REST_S = 5.0
"""How long queries that were told to end at once may take before the engine is closed under them."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def spark_executor(
    settings: WorkerSettings, may_write: Callable[[], bool], inherited: Sequence[int] = ()
) -> Executor:
    """The engine of a real worker: one Spark session; its JVM keeps the descriptors `inherited` open.

    Raises:
        StartupError: PySpark is not installed.
    """
    try:
        from worker.spark.executor import SparkExecutor  # noqa: PLC0415 - most of a worker needs no Spark
        from worker.spark.settings import SparkSettings  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise StartupError(f"Spark is not installed ({error}); pip install 'sparkherd[spark]'") from None
    return SparkExecutor(
        SparkSettings(
            app_name=f"sparkherd {settings.group} {settings.instance_id or settings.client_id}",
            master=settings.spark_master or "local[2]",
            remote=settings.spark_remote,
            conf=settings.spark_conf,
            jvm_timeout_s=settings.jvm_timeout_ms / 1000,
            start_timeout_s=settings.start_timeout_ms / 1000,
            checkpoint_root=settings.checkpoint_root,
            allow_entrypoint=settings.allow_entrypoint,
            allow_secret_env=settings.allow_secret_env,
            secrets_dir=settings.secrets_dir,
            inherited=tuple(inherited),
        ),
        may_write,
    )


def say_on_stdout(line: str) -> None:
    """Print a line that whoever started the worker may wait for."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def run(
    settings: WorkerSettings,
    make_executor: MakeExecutor = spark_executor,
    say: Callable[[str], None] = say_on_stdout,
    end_process: Callable[[int], object] = os._exit,
) -> int:
    """Work until told to stop; returns the exit code.

    Args:
        settings: the worker's.
        make_executor: makes the engine; given a function that tells, from any thread, whether the worker may
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
            make_executor=make_executor,
            say=say,
            end_process=end_process,
        )
        handlers = StatusHandlers(worker.view, worker.meter.instruments)
        async with serving(settings.status_listen, handlers) as status_url:
            if status_url is not None:
                say(f"status on {status_url}")
            return await worker.work()


class Worker:
    """One worker's parts, tied together."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        assignors: Sequence[Assignor],
        background: BackgroundTasks,
        transport: Transport,
        make_executor: MakeExecutor,
        say: Callable[[str], None],
        end_process: Callable[[int], object],
    ) -> None:
        self._settings = settings
        self._assignors = assignors
        self._background = background
        self._end_process = end_process
        self.meter = Meter(settings.group)
        self.meter.instruments.read_at_scrape(WorkerReader(self.view))
        clock = SystemClock()
        self._lease = SessionLease(
            lease_s(settings.session_timeout_ms), clock, lambda: self._post(LeaseExpired())
        )
        self._executor = make_executor(settings, self._lease.may_write)
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
        self._runner = TaskRunner(
            settings,
            manager=client,
            executor=self._executor,
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
            tasks=self._runner,
            leader=Leader(assignors, session_timeout_ms=settings.session_timeout_ms),
            clock=clock,
            spawn=background.spawn,
            surrender=self._surrender,
            revoke_s=min(settings.stop_timeout_ms, settings.session_timeout_ms / 2) / 1000,
            drain_s=settings.stop_timeout_ms / 1000 + DRAIN_MARGIN_S,
            joined=lambda member_id: say(f"joined {settings.group} as {member_id}"),
        )

    def view(self) -> WorkerView:
        """What it is doing, for those who watch it."""
        return WorkerView(
            group=self._settings.group,
            member_id=self._member.member_id,
            generation=self._member.generation,
            state=self._member.state,
            lease_s=self._lease.remaining_s,
            tasks=self._runner.views(),
        )

    async def work(self) -> int:
        """Join when the engine is up, run tasks, and end in order; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        self.meter.loop_lag.start()
        self._watchdog.start()
        try:
            self._background.spawn(self._lease.watch())
            starting = self._background.spawn(self._start())
            farewell = await self._background.watch(self._member.quit)
            starting.cancel()
            return await self._end(farewell)
        finally:
            await self._executor.close()
            self._watchdog.close()
            self.meter.loop_lag.stop()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def _start(self) -> None:
        """The engine takes seconds to come up; that no manager answers is found out, and told, meanwhile."""
        looking = self._background.spawn(self._discovery.coordinator())
        try:
            await self._executor.open()
        except QueryError as error:
            raise StartupError(str(error)) from None
        await looking
        gc.freeze()  # what was imported stays: looking through it again and again stops everything for 25 ms
        self._background.spawn(self._watch_engine())
        self._post(Started())

    async def _watch_engine(self) -> None:
        death = await self._executor.died()
        farewell = Quit(Reason.ENGINE_DIED, f"the engine died: {death.how}", death.end)
        self._post(StopAsked(farewell, in_order=False))

    async def _end(self, farewell: Quit) -> int:
        tell = log.info if farewell.reason is Reason.ASKED else log.error
        tell(farewell.message, group=self._settings.group)
        await self._runner.come_to_rest(REST_S)
        return EXIT_CODES[farewell.reason]

    def _end_at_once(self, tasks: tuple[str, ...]) -> None:
        """Called from the watchdog's thread: what may not write any more will not."""
        end = partial(self._end_process, EXIT_CODES[Reason.ENGINE_DIED])
        end_at_once(tasks, self._executor.kill, end, group=self._settings.group)

    def _surrender(self) -> None:
        self._lease.surrender()
        self.meter.lost()

    def _post(self, event: Event) -> None:
        """For the parts that are made before the member is."""
        self._member.post(event)

    def _on_signal(self, number: int) -> None:
        """The first signal ends the worker in order, the second one at once."""
        for each in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(each, os._exit, 128 + each)
        self._background.spawn(self._depart(Quit(Reason.ASKED, f"stopped by {signal.Signals(number).name}")))

    async def _depart(self, farewell: Quit) -> None:
        """A member has its tasks moved away first, unless it is static: that means to come back to them."""
        in_order = True
        if self._member.member_id and self._settings.instance_id is None:
            in_order = await move_away(
                self._member.member_id,
                manager=self._client,
                managers=self._discovery,
                tasks=self._runner,
                clock=self._clock,
                within_s=self._settings.stop_timeout_ms / 1000,
            )
        self._post(StopAsked(farewell, in_order=in_order))

    def _offer(self, tasks_revision: int) -> tuple[Protocol, ...]:
        """Every assignor this worker can use, each with the same metadata."""
        metadata = encode_opaque(
            WorkerMetadata(
                owned=self._runner.owned(),
                claiming=self._runner.claiming(),
                capacity=self._settings.capacity,
                labels=self._settings.label,
                url=self._executor.url,
                tasks_revision=tasks_revision,
                settles=True,
            )
        )
        return tuple(Protocol(assignor.name, metadata) for assignor in self._assignors)


def _terms(settings: WorkerSettings, assignors: Sequence[Assignor]) -> Terms:
    """One eager assignor makes the member eager: it does not know before a join which one will be chosen."""
    return Terms(
        client_id=settings.client_id,
        instance_id=settings.instance_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        wait_ms=settings.wait_ms,
        eager=any(assignor.kind == "eager" for assignor in assignors),
    )
