"""Letting go of tasks, in batches: what is stopped while one release is under way goes with the next."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReleaseRequest
from worker.membership.reactions import RequestKind
from worker.tasks.exchange.manager_link import is_loss, is_passing
from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.tasks.exchange.manager_link import ManagerLink

MOST_AT_ONCE: Final = 1000
"""Tasks in one release: with names of full length a quarter of a MiB, far below what a manager takes."""


class Released(NamedTuple):
    """The token of a task, and whether its query runs on."""

    token: int
    is_running: bool


class Releases:
    """Gives tokens back.

    Args:
        link: to the manager.
        released: is told each task, its token and what the manager says to that, once it has heard of it.
        failed: is called each time it has not.
    """

    def __init__(
        self, link: ManagerLink, *, released: Callable[[str, int, str], None], failed: Callable[[], None]
    ) -> None:
        self._link = link
        self._released = released
        self._failed = failed
        self._batch: dict[str, Released] = {}
        self._tries = 0
        self._era = object()
        self._changed = ChangeSignal()

    def add(self, task: str, token: int, *, is_running: bool = False) -> None:
        """Release `task`; returns at once. With `is_running` its query runs on, for its next owner."""
        self._batch[task] = Released(token, is_running)
        self._changed.notify()

    def forget(self) -> None:
        """Release nothing of what was to be released: the tokens are lost."""
        self._batch = {}
        self._era = object()

    async def run(self) -> None:
        """Send what is added, for ever."""
        while True:
            await self._changed.until(lambda: bool(self._batch))
            batch = dict(islice(self._batch.items(), MOST_AT_ONCE))
            self._batch = dict(islice(self._batch.items(), MOST_AT_ONCE, None))
            if await self._release(batch):
                self._tries = 0
            else:
                self._failed()
                await self._link.pause(self._tries)
                self._tries += 1

    async def _release(self, batch: dict[str, Released]) -> bool:
        """Whether that is settled; what the manager could not make sense of is tried again."""
        link, identity, era = self._link, self._link.identity(), self._era
        request = ReleaseRequest(
            member_id=identity.member_id,
            instance_id=link.instance_id,
            tasks={task: each.token for task, each in batch.items()},
            running=tuple(task for task, each in batch.items() if each.is_running),
        )
        answer = await link.manager.release(request)
        if not isinstance(answer, Failure):
            for task, each in batch.items():
                self._released(task, each.token, answer.tasks.get(task, ErrorCode.NONE))
            return True
        if not is_passing(answer, RequestKind.RELEASE):
            link.refused(RequestKind.RELEASE, identity, answer)
        if is_loss(answer, RequestKind.RELEASE) or era is not self._era:
            return True
        self._batch = batch | self._batch
        return False
