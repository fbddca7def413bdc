"""Telling the manager how tasks are doing: changes of state at once, progress once a second, in one batch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReportRequest, TaskReport
from worker.membership.reactions import RequestKind
from worker.tasks.exchange.manager_link import is_passing
from worker.waiting import ChangeSignal, first

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from worker.membership.events import Identity
    from worker.tasks.exchange.manager_link import ManagerLink
    from worker.tasks.life import TaskLife

PROGRESS_EVERY_S = 1.0
OVERTAKE_S = 1.0
"""How long a request waits for the answer to the one before, which may be lost."""
MOST_AT_ONCE = 200
"""Reports in one request; with causes of full length it stays below what a manager accepts by default."""


class Reports:
    """Sends what has changed since the manager last heard of it.

    Every `refresh_s` seconds it sends all there is. That keeps the session, and with it the worker's lease,
    while a join is parked for long: heartbeats run in Stable only, but every accepted request renews it.

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
            due = self._due()
            for start in range(0, len(due), MOST_AT_ONCE):
                await self._send(due[start : start + MOST_AT_ONCE])
            if self._tries:
                await self._link.pause(self._tries - 1)

    def _due(self) -> tuple[TaskReport, ...]:
        now = self._link.clock.now()
        if now >= self._all_sent_at + self._refresh_s:
            self._all_sent_at = now
            return tuple(life.status.report() for life in self._lives())
        return tuple(
            report for life in self._lives() if (report := life.status.report()) != life.acknowledged
        )

    async def _send(self, reports: Sequence[TaskReport]) -> None:
        sending = self._spawn(self._tell(reports))
        await first(asyncio.wait({sending}), self._link.clock.sleep(OVERTAKE_S))

    async def _tell(self, reports: Sequence[TaskReport]) -> None:
        link, identity = self._link, self._link.identity()
        sent_at = link.clock.now()
        answer = await link.manager.report(
            ReportRequest(member_id=identity.member_id, instance_id=link.instance_id, tasks=tuple(reports))
        )
        if isinstance(answer, Failure):
            self._on_failure(identity, answer)
            return
        self._tries = 0
        for report in reports:
            self._taken(report, sent_at, ErrorCode.of(answer.tasks.get(report.task, ErrorCode.NONE)))

    def _on_failure(self, identity: Identity, failure: Failure) -> None:
        """Whatever it was, the next report tells the same news, fresher."""
        if not is_passing(failure, RequestKind.REPORT):
            self._link.refused(RequestKind.REPORT, identity, failure)
        self._tries += 1
        self._is_urgent = True
        self._changed.notify()
