"""Grants that came too late to be believed: asked for again, later and later, and told to whoever looks.

A task without a fence is begun only while the lease of its claim lasts (docs/exactly-once.md). A worker that
was frozen meets that once; one whose manager always takes longer would claim without end and run nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from protocol.messages.ownership import ReportRequest, TaskReport
from protocol.states import TaskState
from worker.tasks.exchange.batches import encoded_size, in_batches
from worker.waiting import Backoff

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from worker.tasks.exchange.manager_link import ManagerLink
    from worker.tasks.grants import Grant

log = structlog.get_logger(__name__)

AGAIN: Final = Backoff(first_s=1.0, limit_s=60.0)
"""Before each claim after the second; the second one is sent at once."""


class LateGrants:
    """What one claim after the other was granted too late.

    Args:
        link: to the manager.
        lease_s: how soon after its claim a grant has to come, in seconds.
        again: claims anew what is still assigned of these tasks.
        spawn: runs a coroutine in the background.
    """

    def __init__(
        self,
        link: ManagerLink,
        lease_s: float,
        again: Callable[[frozenset[str]], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._link = link
        self._lease_s = lease_s
        self._again = again
        self._spawn = spawn
        self._tries = 0
        self._grants: list[Grant] = []

    def add(self, grant: Grant) -> None:
        """`grant` is one of the answer that is being taken in."""
        self._grants.append(grant)

    def none(self) -> None:
        """A grant came in time."""
        self._tries = 0

    def answered(self, sent_at: float) -> None:
        """The answer to the claim of `sent_at` has been taken in as a whole."""
        grants, self._grants = self._grants, []
        if not grants:
            return
        delay_s = AGAIN.delay_s(self._tries - 1, self._link.chance()) if self._tries else 0.0
        self._tries += 1
        took_s = self._link.clock.now() - sent_at
        log.warning(
            "claim was answered too late, it is sent again",
            tasks=len(grants),
            task=grants[0].task,
            took_s=round(took_s, 1),
            at_most_s=round(self._lease_s, 1),
            again_in_s=round(delay_s, 1),
            tries=self._tries,
        )
        self._spawn(self._tell(grants, self._cause(took_s)))
        self._spawn(self._ask_again(frozenset(grant.task for grant in grants), delay_s))

    def _cause(self, took_s: float) -> str:
        return (
            f"not started yet: the manager's grant took {took_s:.1f} s, and a task without a fence is started"
            f" within {self._lease_s:.1f} s of its claim or not at all (nine tenths of --session-timeout-ms);"
            f" claimed {self._tries} times so far"
        )

    async def _tell(self, grants: list[Grant], cause: str) -> None:
        """The state for people; nothing depends on its being heard, and the next one says it again."""
        identity = self._link.identity()
        reports = [
            TaskReport(task=grant.task, token=grant.token, state=TaskState.STARTING, cause=cause)
            for grant in grants
        ]
        for batch in in_batches(reports, encoded_size, most=len(reports)):
            await self._link.manager.report(
                ReportRequest(
                    member_id=identity.member_id, instance_id=self._link.instance_id, tasks=tuple(batch)
                )
            )

    async def _ask_again(self, tasks: frozenset[str], delay_s: float) -> None:
        await self._link.clock.sleep(delay_s)
        self._again(tasks)
