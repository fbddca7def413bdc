"""The one task that talks to the storage: group commit, and taking groups up again after trouble."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from manager.background.supervision import vital
from manager.runtime.commits import Commits
from manager.runtime.reloader import Reloader
from manager.runtime.replies import UNAVAILABLE, deliver, deliver_instead
from manager.runtime.retry_timer import RetryTimer
from manager.storage.base import StaleEpochError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from manager.core.stored_rows import Row
    from manager.core.turn import Turn
    from manager.metrics.meter import Meter
    from manager.runtime.commits import Commit
    from manager.runtime.routing import GroupRouting
    from manager.storage.base import Storage
    from protocol.errors import Failure

log = structlog.get_logger(__name__)

STALL_S = 10.0
"""How long a request waits for a storage that says nothing, neither yes nor no."""
GATHER_S = 0.02
"""The longest that a transaction waits for more rows."""
QUIET_TURNS = 3
"""Turns of the loop without a row after which none is about to come: a request takes as many to its rule."""


class Writer:
    """Commits all that one turn of the loop produced in one transaction, then lets its answers go.

    A group whose commit failed is let go from memory by `on_lost` and taken up from storage by `on_loaded`:
    trouble is a small crash of that group. `Commits` has the rules. While the storage is known to fail,
    whatever needs it is refused at once, and a growing pause lies between two looks for it.
    """

    def __init__(
        self,
        storage: Storage,
        routing: GroupRouting,
        meter: Meter,
        *,
        on_lost: Callable[[str], None],
        on_loaded: Callable[[str, Iterable[Row]], None],
        on_durable: Callable[[Commit], None],
        on_fenced: Callable[[Collection[int]], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._routing = routing
        self._meter = meter
        self._on_lost = on_lost
        self._on_durable = on_durable
        self._on_fenced = on_fenced
        self._on_broken = on_broken
        self._commits = Commits()
        self._retry_timer = RetryTimer()
        self._wake = asyncio.Event()
        self.reloader = Reloader(storage, routing, self._commits, on_lost=on_lost, on_loaded=on_loaded)
        self._went_on = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False  # the last commit failed, and the storage was not seen to be well since
        self._is_away = False  # it was looked for since, and was not there
        self._is_stalled = False
        self._is_stopping = False
        self._is_broken = False

    @property
    def is_healthy(self) -> bool:
        """Whether the storage did what it was last asked to, and is not late with an answer."""
        return not (self._is_failing or self._is_stalled)

    def start(self) -> None:
        """Begin to write."""
        self._task = vital("writing to the storage", self._run, self._break)

    async def stop(self) -> None:
        """Commit what is gathered; those who wait are answered in any case, after `STALL_S` at most."""
        self._is_stopping = True
        self.reloader.unloadable.close()
        self._wake.set()
        if self._task is None:
            return
        _, unfinished = await asyncio.wait([self._task], timeout=STALL_S)
        if unfinished:
            self._stall()
            self._task.cancel()

    def take(self, turn: Turn) -> None:
        """Send the answers of `turn` when all the group's rows so far, its own included, are durable."""
        deliver(self._commits.take(turn))
        if self._is_away:
            self._refuse_gathered()
        elif self._is_stalled:
            deliver_instead(turn.answers, UNAVAILABLE)
        if self._commits.has_work:
            self._wake.set()

    def refusal(self, group: str) -> Failure | None:
        """Why a request could not be answered now: the group, or the storage it waits for, is away."""
        if self._commits.is_lost(group) or (self._is_stalled and not self._commits.is_settled(group)):
            return UNAVAILABLE
        return self.reloader.unloadable.get(group)

    def lose(self, group: str) -> None:
        """Forget `group` and read it again once what is on its way to the storage has arrived."""
        self._commits.lose(group)
        self._on_lost(group)
        self._wake.set()

    def abandon(self, is_gone: Callable[[str], bool]) -> None:
        """Forget what was decided for groups that are another manager's by now: it must never be written."""
        for name in self._commits.gathered():
            if is_gone(name):
                deliver_instead(self._commits.forget(name), UNAVAILABLE)

    async def settle(self, groups: Collection[str]) -> None:
        """Wait until none of these groups has rows on the way that may arrive; `STALL_S` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STALL_S):
                while not (self._is_broken or all(self._commits.is_settled(group) for group in groups)):
                    self._went_on.clear()
                    await self._went_on.wait()

    def _break(self) -> None:
        """A bug: which rows are durable is not known any more, but whoever reads them again will know."""
        self._is_broken = True
        self._stall()
        self._went_on.set()
        self._on_broken()

    async def _run(self) -> None:
        """Until `stop`: commit, deliver, reload."""
        while not self._is_stopping or self._commits.has_work:
            await self._wake.wait()
            self._wake.clear()
            await self._gather()
            if self._is_failing and self._is_stopping:
                self._refuse_gathered()
            if self._commits.has_work:
                await self._commit()
            self._went_on.set()
            if not self._is_stopping and not self._retry_timer.is_pausing:
                await self._reload()

    async def _gather(self) -> None:
        """Let rows share a transaction for as long as more of them come in, `GATHER_S` at most.

        A transaction under way and a busy loop only get into each other's way: they have one interpreter.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + GATHER_S
        quiet = 0
        while quiet < QUIET_TURNS and loop.time() < until:
            before = self._commits.rows
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._commits.rows == before else 0

    async def _commit(self) -> None:
        changes = (commit := self._commits.begin()).all_changes()
        try:
            with self._patience(), self._meter.commit(len(changes)):
                await self._storage.commit(changes, self._routing.epochs(commit.groups))
        except StaleEpochError as error:
            self._wake.set()
            self._refuse()
            self._on_fenced(error.slots)
            log.warning("fenced: another manager has taken over", slots=len(error.slots))
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may hear of a row that is not stored
            self._is_failing = True
            self._wake.set()
            self._refuse()
            log.warning(
                "storage failed, groups will be read again", error=_told(error), groups=len(commit.groups)
            )
        else:
            deliver(self._commits.committed().all_answers())
            self._on_durable(commit)

    def _refuse(self) -> None:
        """The commit under way may not be durable: its groups are lost, its answers are not to be heard."""
        lost = self._commits.present()
        deliver_instead(self._commits.failed(), UNAVAILABLE)
        for name in lost:
            self._on_lost(name)

    def _refuse_gathered(self) -> None:
        if self._commits.has_work:
            self._commits.begin()
            self._refuse()

    async def _reload(self) -> None:
        """Lost groups; also for no group at all, to find out whether the storage is well again."""
        names = self.reloader.due()
        if not names and not self._is_failing:
            return
        try:
            with self._patience():
                self._on_fenced(await self._routing.renew(names))
                reading = await self.reloader.read(names)
        except Exception as error:  # noqa: BLE001 - the next attempt may find the storage well again
            self._is_failing = self._is_away = True
            self._refuse_gathered()
            pause_s = self._retry_timer.pause(self._wake.set)
            log.warning("storage still fails", error=_told(error), groups=len(names), retry_s=pause_s)
            return
        self._is_failing = self._is_away = False
        if self._is_stopping:
            return
        self._retry_timer.reset()
        self.reloader.take_up_all(reading)
        if self.reloader.due():
            self._wake.set()

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """While the storage works: when it takes too long, nobody has to wait for it any more."""
        late = asyncio.get_running_loop().call_later(STALL_S, self._stall)
        try:
            yield
        finally:
            late.cancel()
            self._is_stalled = False

    def _stall(self) -> None:
        self._is_stalled = True
        deliver_instead(self._commits.waiting(), UNAVAILABLE)
        log.warning("storage does not answer", waited_s=STALL_S)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
