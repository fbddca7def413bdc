"""Telling the manager how tasks are doing: changes of state at once, progress once a second, in batches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import structlog

from protocol.errors import ErrorCode, Failure
from protocol.messages.lag import without_partitions
from protocol.messages.ownership import ReportRequest, TaskReport
from worker.membership.reactions import RequestKind
from worker.tasks.exchange.batches import MOST_BYTES, encoded_size, in_batches, smaller
from worker.tasks.exchange.manager_link import is_passing
from worker.waiting import ChangeSignal, first

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from worker.membership.events import Identity
    from worker.tasks.exchange.manager_link import ManagerLink
    from worker.tasks.life import TaskLife

log = structlog.get_logger(__name__)

PROGRESS_EVERY_S = 1.0
OVERTAKE_S = 1.0
"""How long a request waits for the answer to the one before, which may be lost."""
MOST_AT_ONCE = 200
"""Reports in one request, however small they are: the manager takes a request in without a pause."""
SHORT_CAUSE = 200
"""Characters of a cause that has to be cut before the manager takes it."""


class Telling(NamedTuple):
    """A report, and what of it the manager is sent: not what it has been told already."""

    report: TaskReport
    sent: TaskReport


class Reports:
    """Sends what has changed since the manager last heard of it.

    Every `refresh_s` seconds it sends all there is. That keeps the session, and with it the worker's lease,
    while a join is parked for long: heartbeats run in Stable only, but every accepted request renews it.
    A lag is sent once: it may be a hundred times as large as the rest, and is measured anew soon.

    Args:
        link: to the manager.
        lives: the tasks it has something to say about.
        refresh_s: seconds between reports of everything.
        taken: is told each report, when it was sent, and the code it was answered with.
        spawn: runs a coroutine in the background.
    """

    def __init__(
        self,
        link: ManagerLink,
        *,
        lives: Callable[[], Iterable[TaskLife]],
        refresh_s: float,
        taken: Callable[[TaskReport, float, ErrorCode], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._link = link
        self._lives = lives
        self._refresh_s = refresh_s
        self._taken = taken
        self._spawn = spawn
        self._changed = ChangeSignal()
        self._is_urgent = False
        self._all_sent_at = link.clock.now()
        self._tries = 0
        self._most_bytes = MOST_BYTES

    def changed(self) -> None:
        """Some task has changed its state: report it now."""
        self._is_urgent = True
        self._changed.notify()

    def everything(self) -> None:
        """Report all there is now, changed or not."""
        self._all_sent_at = self._link.clock.now() - self._refresh_s
        self.changed()

    async def run(self) -> None:
        """Report, for ever."""
        while True:
            await first(
                self._changed.until(lambda: self._is_urgent), self._link.clock.sleep(PROGRESS_EVERY_S)
            )
            self._is_urgent = False
            for batch in in_batches(
                self._due(), _size, most=MOST_AT_ONCE, most_bytes=lambda: self._most_bytes
            ):
                await self._send(batch)
            if self._tries:
                await self._link.pause(self._tries - 1)

    def _due(self) -> tuple[Telling, ...]:
        now = self._link.clock.now()
        is_all = now >= self._all_sent_at + self._refresh_s
        if is_all:
            self._all_sent_at = now
        return tuple(
            Telling(report, _news(report, life.acknowledged))
            for life in self._lives()
            if (report := life.status.report()) != life.acknowledged or is_all
        )

    async def _send(self, batch: Sequence[Telling]) -> None:
        sending = self._spawn(self._tell(batch))
        await first(asyncio.wait({sending}), self._link.clock.sleep(OVERTAKE_S))

    async def _tell(self, batch: Sequence[Telling]) -> None:
        link, identity = self._link, self._link.identity()
        sent_at = link.clock.now()
        reports = tuple(telling.sent for telling in batch)
        answer = await link.manager.report(
            ReportRequest(member_id=identity.member_id, instance_id=link.instance_id, tasks=reports)
        )
        if isinstance(answer, Failure):
            await self._on_failure(identity, answer, batch)
            return
        self._tries = 0
        for report, _ in batch:
            self._taken(report, sent_at, ErrorCode.of(answer.tasks.get(report.task, ErrorCode.NONE)))

    async def _on_failure(self, identity: Identity, failure: Failure, batch: Sequence[Telling]) -> None:
        """What is too large is told in smaller parts; else the next report tells the same news, fresher."""
        is_too_large = failure.code is ErrorCode.PAYLOAD_TOO_LARGE
        if is_too_large and (parts := list(smaller(batch, _without_the_largest))):
            if len(batch) > 1:
                self._most_bytes = min(self._most_bytes, sum(map(_size, batch)) // 2)
            for part in parts:
                await self._tell(part)
            return
        if not is_passing(failure, RequestKind.REPORT):
            self._link.refused(RequestKind.REPORT, identity, failure)
        self._tries += 1
        self._is_urgent = True
        self._changed.notify()


def _size(telling: Telling) -> int:
    return encoded_size(telling.sent)


def _news(report: TaskReport, told: TaskReport | None) -> TaskReport:
    if report.lag is None or told is None or report.lag != told.lag:
        return report
    return msgspec.structs.replace(report, lag=None)


def _without_the_largest(telling: Telling) -> Telling | None:
    """What a report can be told without: a lag's partitions, then figures and most of the cause."""
    report, sent = telling
    lag = sent.lag
    if lag is not None and lag.partitions:
        left = msgspec.structs.replace(sent, lag=without_partitions(lag))
    elif lag is not None or sent.metrics is not None or len(sent.cause or "") > SHORT_CAUSE:
        cause = None if sent.cause is None else sent.cause[:SHORT_CAUSE]
        left = msgspec.structs.replace(sent, lag=None, metrics=None, cause=cause)
    else:
        return None
    log.warning(
        "a report is larger than the manager's --max-request-bytes, it is sent without its largest part",
        task=report.task,
        bytes=encoded_size(sent),
        sent_bytes=encoded_size(left),
    )
    return Telling(report, left)
